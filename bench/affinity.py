"""Prefix hits and waits of conversations by the router's own policy against round robin.

Both sides have the same conversations of several turns, four simulated engines and a router, all
real processes. The engines' pools are so small that they hold all conversations once but not at
each engine, and a step takes longer the more it computes. The load is open: conversations begin
at their time, however long the answers take.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from bench.multi_turn import Figures, Shape, converse
from bench.ratio import Ratio
from bench.service_process import ROOT, service
from services.shared.stream.client_session import ClientSession
from services.shared.stream.load import Load, ReplicaState
from services.shared.tls.way import CLEAR

ENGINES = 4
BLOCK_TOKENS = 16
POOL_BLOCKS = 1000
"""Of each engine."""

SHAPE = Shape(conversations=160, turns=6, rate=4.0, opening=600, growth=160, answer=24, think_s=1.0)
SIMULATION = {"step_us": 2000, "token_us": 100}


@contextmanager
def fleet(model: Path, policy: str) -> Iterator[str]:
    """Engines and a router with this policy; the router's address."""
    executor = {
        "model_path": str(model),
        "simulate": True,
        "simulation": SIMULATION,
        "memory": {"kv_cache_bytes": POOL_BLOCKS * BLOCK_TOKENS},
    }
    engine = {"server": {"port": 0}, "executor": executor}
    with ExitStack() as stack:
        addresses = [
            stack.enter_context(service("services.engine", engine)) for _ in range(ENGINES)
        ]
        router = {
            "server": {"port": 0},
            "replicas": addresses,
            "service": {"balancing": {"policy": policy}, "limits": {"settle_s": 0}},
            "telemetry": {"log_level": "error"},
        }
        yield stack.enter_context(service("services.router", router))


async def measured(address: str, shape: Shape, seed: int) -> Figures:
    """The conversations through the router, once all its engines are up."""
    complete = asyncio.Event()

    def told(load: Load | None) -> None:
        blocks = load.total_blocks if load is not None else 0
        if load is not None and load.state is ReplicaState.READY and blocks == _all_blocks():
            complete.set()

    session = ClientSession(CLEAR, address, told)
    running = asyncio.ensure_future(session.run())
    await complete.wait()
    figures = await converse(session, shape, seed)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await session.close()
    return figures


def _all_blocks() -> int:
    return ENGINES * POOL_BLOCKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--conversations", type=int, default=SHAPE.conversations)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    shape = replace(SHAPE, conversations=options.conversations)
    figures = {}
    for policy in ("round_robin", "affinity"):
        with fleet(options.model, policy) as address:
            figures[policy] = asyncio.run(measured(address, shape, options.seed))
        print(f"{policy}: {figures[policy]}", flush=True)
    own, turns = figures["affinity"], figures["round_robin"]
    wait = own.mean_first_token_ms / turns.mean_first_token_ms
    print(Ratio(name="affinity_first_token", value=wait))
    print(Ratio(name="affinity_hits", value=own.hit_rate / turns.hit_rate, aim=">= 2"))


if __name__ == "__main__":
    main()
