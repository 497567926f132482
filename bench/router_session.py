"""Tokens a second through the router: one session for all requests against one call for each.

Both sides have the same simulated engine and 256 streams. One side goes through our router over a
session; the other through a proxy with a unary-stream call for each request and a message for each
token, from the engine to the proxy and from there to the client.
The sides take turns, each in a session of its own. Neighbours on the machine only slow a side down,
so its best round counts; the last line is the ratio of the two.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenway.stream.v1 import stream_pb2_grpc as rpc

from bench.service_process import ROOT, service
from services.shared.channel import open_channel
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation, Stopping
from services.shared.stream.generation_wire import request_of
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import Submission
from services.shared.tls.way import CLEAR

STREAMS = 256
WARM_UP_TOKENS = 8
EXECUTOR = {
    "simulate": True,
    "context_length": 8192,
    "simulation": {"step_us": 0, "token_us": 0},
}
ENGINE = {
    "server": {"port": 0},
    "service": {"batching": {"max_batch_size": STREAMS, "token_budget": 4 * STREAMS}},
}


@dataclass(frozen=True, slots=True)
class Side:
    """One way through: the processes, how they are used, and how many tokens a stream gets."""

    engine: str
    middle: str
    measure: Callable[[str, int], Coroutine[Any, Any, float]]
    tokens: int

    def settings(self, engine: str) -> Mapping[str, Any]:
        if self.middle == "services.router":
            return {"server": {"port": 0}, "replicas": [engine]}
        return {"replica": engine}


def generation(number: int, tokens: int) -> Generation:
    return Generation(
        request_id=f"bench-{number}",
        prompt_ids=[1000 + number] * 16,
        stopping=Stopping(max_tokens=tokens, ignore_eos=True),
    )


class Count:
    """Counts tokens of all streams until each has ended."""

    def __init__(self) -> None:
        self.tokens = 0
        self._open = STREAMS
        self.done = asyncio.Event()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Tokens):
            self.tokens += len(event.ids)
        elif isinstance(event, Failed):
            raise event.error()
        elif isinstance(event, Finished):
            self._open -= 1
            if not self._open:
                self.done.set()


async def over_a_session(address: str, tokens: int) -> float:
    ready = asyncio.Event()

    def told(load: Load | None) -> None:
        if load is not None and load.state is ReplicaState.READY:
            ready.set()

    session = ClientSession(CLEAR, address, told)
    running = asyncio.ensure_future(session.run())
    await ready.wait()
    await _session_round(session, WARM_UP_TOKENS)
    rate = await _session_round(session, tokens)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await session.close()
    return rate


async def _session_round(session: ClientSession, tokens: int) -> float:
    count = Count()
    began = time.perf_counter()
    for number in range(STREAMS):
        session.submit(Submission(generation(number, tokens), "", count))
    await count.done.wait()
    return _rate(count.tokens, tokens, began)


async def over_calls(address: str, tokens: int) -> float:
    async with open_channel(address) as channel:
        stub = rpc.TokenStreamServiceStub(channel)
        await _calls_round(stub, WARM_UP_TOKENS)
        return await _calls_round(stub, tokens)


async def _calls_round(stub: rpc.TokenStreamServiceStub, tokens: int) -> float:
    began = time.perf_counter()
    counts = await asyncio.gather(*(_call(stub, number, tokens) for number in range(STREAMS)))
    return _rate(sum(counts), tokens, began)


async def _call(stub: rpc.TokenStreamServiceStub, number: int, tokens: int) -> int:
    count = 0
    async for response in stub.Generate(request_of(generation(number, tokens))):
        received = len(response.tokens.token_ids)
        if received > 1:
            raise RuntimeError(f"expected a token in a message, got {received}")
        count += received
    return count


def _rate(received: int, tokens: int, began: float) -> float:
    seconds = time.perf_counter() - began
    if received != STREAMS * tokens:
        raise RuntimeError(f"expected {STREAMS * tokens} tokens, got {received}")
    return received / seconds


SIDES = {
    "session": Side("services.engine", "services.router", over_a_session, 512),
    "calls": Side("bench.token_calls_engine", "bench.unary_proxy", over_calls, 48),
}


@contextmanager
def way(side: Side, model: Path) -> Iterator[str]:
    """Engine and middle, up; the address of the middle."""
    executor = {**EXECUTOR, "model_path": str(model)}
    with (
        service(side.engine, {**ENGINE, "executor": executor}) as engine,
        service(side.middle, side.settings(engine)) as address,
    ):
        yield address


def measured(name: str, model: Path) -> float:
    """Tokens a second of one side, in a session of its own (setsid)."""
    command = [sys.executable, "-m", "bench.router_session", "--side", name, "--model", str(model)]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
    child = subprocess.run(
        command, stdout=subprocess.PIPE, env=environ, start_new_session=True, check=True
    )
    return float(json.loads(child.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES, help="measure one side in this process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    options = parser.parse_args()
    if options.side:
        side = SIDES[options.side]
        with way(side, options.model) as address:
            print(json.dumps(asyncio.run(side.measure(address, side.tokens))))
        return
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(options.rounds):
        for name, known in rates.items():
            known.append(measured(name, options.model))
            print(f"{name}: {known[-1]:,.0f} tokens/s at {STREAMS} streams")
    print(f"ratio: {max(rates['session']) / max(rates['calls']):.1f}")


if __name__ == "__main__":
    main()
