"""What it costs to have a prompt computed by another engine, and what it saves who answers.

Two engines of a thread each, one for prefill and one for decode, stand behind two routers: one has
every prompt computed by the first engine, the other none. Prompts of each length that nobody has
seen go through both in turn; nothing else runs. Told are the time to the first token over that
without the hop, and the CPU time of the engine that answers over the same: what its other streams
do not wait for.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tokenway.router.v1 import router_pb2, router_pb2_grpc

from bench.ratio import Ratio
from bench.separation import prompt
from bench.service_process import ROOT, ServiceProcess, service, service_process
from bench.token_door import POLL_S, TokenDoor
from services.shared.channel import open_channel

LENGTHS = (64, 128, 256, 512, 1024)
THRESHOLDS = {"own": 0, "hop": 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """Of one prompt, in seconds."""

    first_token_s: float
    cpu_s: float


@contextmanager
def running(model: Path) -> Iterator[tuple[ServiceProcess, dict[str, str]]]:
    """The engine that answers, and the routers by name."""
    with ExitStack() as stack:
        engines = [
            stack.enter_context(
                service_process(
                    "services.engine",
                    {
                        "server": {"port": 0},
                        "executor": {
                            "model_path": str(model),
                            "device": "cpu",
                            "role": role,
                            "threads": 1,
                        },
                    },
                )
            )
            for role in ("prefill", "decode")
        ]
        addresses = [engine.doors["grpc"] for engine in engines]
        routers = {
            name: stack.enter_context(
                service(
                    "services.router",
                    {
                        "server": {"port": 0},
                        "replicas": addresses,
                        "service": {"prefill": {"threshold_tokens": threshold, "peer_tokens": 0}},
                    },
                )
            )
            for name, threshold in THRESHOLDS.items()
        }
        yield engines[1], routers


async def measured(
    engine: ServiceProcess, routers: dict[str, str], rounds: int
) -> dict[tuple[int, str], list[Cost]]:
    doors = {name: TokenDoor(address) for name, address in routers.items()}
    costs: dict[tuple[int, str], list[Cost]] = {}
    try:
        for address in routers.values():
            await _both_ready(address)
        number = 0
        for length in (LENGTHS[0], *LENGTHS) * rounds:  # the first of each round warms up
            for name, door in doors.items():
                number += 1
                before = engine.cpu_seconds()
                output = await door.generate(prompt(number, length), 1)
                cost = Cost(first_token_s=output.first_token_s, cpu_s=engine.cpu_seconds() - before)
                if (name == "hop") is (output.cached.peer > 0):
                    costs.setdefault((length, name), []).append(cost)
                else:
                    print(f"{length} tokens: {output.cached.peer} of a peer, by {name}", flush=True)
    finally:
        for door in doors.values():
            await door.close()
    return costs


async def _both_ready(address: str) -> None:
    async with open_channel(address) as channel:
        operator = router_pb2_grpc.RouterServiceStub(channel)
        told = await operator.ListReplicas(router_pb2.ListReplicasRequest())
        while not all(one.load.fetches_blocks for one in told.replicas):
            await asyncio.sleep(POLL_S)
            told = await operator.ListReplicas(router_pb2.ListReplicasRequest())


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        first_token_s=statistics.median(cost.first_token_s for cost in costs),
        cpu_s=statistics.median(cost.cpu_s for cost in costs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with running(options.model) as (engine, routers):
        costs = asyncio.run(measured(engine, routers, options.rounds))
    for length in LENGTHS:
        own, hop = (_median(costs[length, name]) for name in ("own", "hop"))
        print(
            f"{length} tokens: first token after {own.first_token_s * 1e3:.0f} ms, by a hop "
            f"{hop.first_token_s * 1e3:.0f}; CPU {own.cpu_s * 1e3:.0f} ms, by a hop "
            f"{hop.cpu_s * 1e3:.0f}"
        )
        print(Ratio(name=f"first_token_{length}", value=hop.first_token_s / own.first_token_s))
        print(Ratio(name=f"cpu_{length}", value=hop.cpu_s / own.cpu_s))


if __name__ == "__main__":
    main()
