"""What one tenant's long prompts do to another's short ones, and whether shares follow weights.

Two simulated engines, as real processes. One tenant sends 50 long prompts at once; another sends a
short one every so often. The short ones' 95th percentile of the wait for a first token is told over
that of a run without the long ones: through the router, which lets generations go in a fair order,
and straight to the engines in turns, which keep the order in which they came. Then three tenants
with weights send more than there is room for, and each one's tokens are compared with its share
while all of them wait.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.ratio import Ratio
from bench.service_process import ROOT, service
from bench.tenants import Asked, Door, Wish, opened

ENGINES = 2
BATCH = 8
PLACES = ENGINES * (BATCH + 1)
"""A replica is sent an eighth more than it takes at a time."""

BLOCK_TOKENS = 16
POOL_BLOCKS = 3000
"""Of each engine: about as many long prompts as it has places."""

LONG = Wish(tenant="long", prompt_tokens=5000, output_tokens=64)
LONG_PROMPTS = 50
SHORT = Wish(tenant="short", prompt_tokens=100, output_tokens=16)
SHORT_EVERY_S = 0.1
WEIGHTS = {"one": 1, "two": 2, "five": 5}


@dataclass(frozen=True, slots=True)
class Fleet:
    """Addresses of the engines and of the router before them."""

    engines: Sequence[str]
    router: str


@contextmanager
def fleet(model: Path) -> Iterator[Fleet]:
    executor = {
        "model_path": str(model),
        "simulate": True,
        "context_length": 8192,
        "simulation": {"step_us": 2000, "token_us": 100},
        "memory": {"kv_cache_bytes": POOL_BLOCKS * BLOCK_TOKENS},
    }
    batching = {"max_batch_size": BATCH}
    engine = {"server": {"port": 0}, "executor": executor, "service": {"batching": batching}}
    queue = {"tenant_weights": [f"{name}={weight}" for name, weight in WEIGHTS.items()]}
    with ExitStack() as stack:
        engines = [stack.enter_context(service("services.engine", engine)) for _ in range(ENGINES)]
        router = {"server": {"port": 0}, "replicas": engines, "service": {"queue": queue}}
        router["telemetry"] = {"log_level": "error"}
        yield Fleet(engines, stack.enter_context(service("services.router", router)))


async def short_wait_s(addresses: Sequence[str], shorts: int, *, disturbed: bool) -> float:
    """The short ones' 95th percentile of the wait for a first token."""
    async with opened(addresses, ENGINES * POOL_BLOCKS) as door:
        longs = [door.ask(LONG) for _ in range(LONG_PROMPTS * disturbed)]
        asked = []
        for _ in range(shorts):
            await asyncio.sleep(SHORT_EVERY_S)
            asked.append(door.ask(SHORT))
        if disturbed and all(long.ended.is_set() for long in longs):
            raise RuntimeError("the long prompts were done before the last short one came")
        waits = [(await each.result()).first_s or 0.0 for each in asked]
        for long in longs:
            await long.result()
    return sorted(waits)[int(0.95 * len(waits))]


async def largest_error(address: str, each: int) -> float:
    """By how much a tenant's share of tokens misses its weight at most, as a share of it."""
    async with opened([address], ENGINES * POOL_BLOCKS) as door:
        asked = _crowd(door, each)
        await asyncio.gather(*(one.result() for one in asked))
    tokens = _tokens_while_all_wait(asked)
    print(f"tokens by tenant while all waited: {tokens}, weights {WEIGHTS}", flush=True)
    per_weight = sum(tokens.values()) / sum(WEIGHTS.values())
    return max(abs(tokens[name] / weight / per_weight - 1) for name, weight in WEIGHTS.items())


def _crowd(door: Door, each: int) -> list[Asked]:
    wishes = [Wish(tenant=name, prompt_tokens=200, output_tokens=50) for name in WEIGHTS]
    return [door.ask(wish) for _ in range(each) for wish in wishes]


def _tokens_while_all_wait(asked: Sequence[Asked]) -> Mapping[str, int]:
    """Tokens of what began after those that found a place at once and before one had no more."""
    since = sorted(one.first_at for one in asked)[PLACES]
    until = min(max(one.first_at for one in asked if one.wish.tenant == name) for name in WEIGHTS)
    tokens = dict.fromkeys(WEIGHTS, 0)
    for one in asked:
        if since < one.first_at <= until:
            tokens[one.wish.tenant] += one.wish.prompt_tokens + one.wish.output_tokens
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--shorts", type=int, default=100)
    parser.add_argument("--each", type=int, default=240, help="generations of a weighted tenant")
    options = parser.parse_args()
    with fleet(options.model) as both:
        for name, addresses in (("without", both.engines), ("with", [both.router])):
            alone, among = (
                asyncio.run(short_wait_s(addresses, options.shorts, disturbed=disturbed))
                for disturbed in (False, True)
            )
            print(f"{name} admission: {1000 * alone:.0f} ms alone, {1000 * among:.0f} ms among")
            print(Ratio(name=f"fairness_wait_{name}_admission", value=among / alone), flush=True)
        error = asyncio.run(largest_error(both.router, options.each))
        print(Ratio(name="fairness_share_error", value=error, aim="<= 0.1"))


if __name__ == "__main__":
    main()
