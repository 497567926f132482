"""What a look into the router's prefix index costs, over the hashes of the prompt's blocks alone.

One prompt among replicas whose pools are full: once none has any of it, once one has all of it and
the others a part, once all have all of it. The least of many runs counts, since neighbours on the
machine only add.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Sequence

from bench.ratio import Ratio
from services.router.balancing.prefix_index import PrefixIndex
from services.router.demand import Demand, Lane
from services.router.status import Identity
from services.shared.addresses import next_address, root_address
from services.shared.stream.blocks import BlockEvents

SIZE = 16
IDENTITY = Identity(
    model="m", version="v", tokenizer_fingerprint="t", layout_id="l", block_size=SIZE
)
ROUNDS = 50


def addresses_of(token_ids: Sequence[int]) -> list[bytes]:
    """The hashes alone."""
    addresses = [root_address(IDENTITY.version, IDENTITY.layout_id, b"")]
    for start in range(0, len(token_ids) - SIZE, SIZE):
        addresses.append(next_address(addresses[-1], token_ids[start : start + SIZE]))
    return addresses[1:]


def filled(replicas: int, blocks: int, held: Callable[[int], Sequence[bytes]]) -> PrefixIndex:
    """An index of full pools; `held` tells what a replica has beside content of its own."""
    index, draw = PrefixIndex(), random.Random(1)  # noqa: S311  # no secret
    for number in range(replicas):
        own = held(number)
        stored = [*own, *(draw.randbytes(16) for _ in range(blocks - len(own)))]
        index.identify(f"r{number}", IDENTITY)
        index.tell(f"r{number}", BlockEvents(sequence=1, snapshot=True, stored=stored))
    return index


def least_us(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times) * 1e6


def looks_us(index: PrefixIndex, prompt: Sequence[int]) -> tuple[float, float]:
    """A first look, and another one for the same demand."""

    def look() -> None:
        demand = Demand(model="m", token_ids=prompt, output_tokens=1, lane=Lane.LONG)
        index.cached_tokens(demand)

    demand = Demand(model="m", token_ids=prompt, output_tokens=1, lane=Lane.LONG)
    return least_us(look), least_us(lambda: index.cached_tokens(demand))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--replicas", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=3000, help="of each replica's pool")
    options = parser.parse_args()
    draw = random.Random(0)  # noqa: S311  # no secret
    prompt = [draw.randrange(50_000) for _ in range(options.tokens)]
    chain = addresses_of(prompt)
    hashes_us = least_us(lambda: addresses_of(prompt))
    print(f"hashes of {len(chain)} blocks: {hashes_us:.0f} us")
    cases: dict[str, Callable[[int], Sequence[bytes]]] = {
        "cold": lambda _: (),
        "mixed": lambda number: chain[: len(chain) * (number + 1) // options.replicas],
        "cached": lambda _: chain,
    }
    for name, held in cases.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        index = filled(options.replicas, options.blocks, held)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        look_us, again_us = looks_us(index, prompt)
        told = options.replicas * options.blocks
        print(f"{name}: {look_us:.1f} us, the same demand again {again_us:.1f} us")
        print(f"{name}: the process grew by {grown * 1024 / told:.0f} bytes for a block told")
        print(Ratio(name=f"prefix_{name}", value=look_us / hashes_us, aim="<= 2"))


if __name__ == "__main__":
    main()
