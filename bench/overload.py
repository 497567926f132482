"""Five times as many requests as the system can answer, from clients that come again and again.

Engine (simulated, so that its capacity is known), router and codec are processes. The peak is what
twice as many clients as the engine has places get, each asking again once it is answered. Then
clients arrive at five times that rate, in the manners of those that people use: 3 to 30 tries, some
wait as long as they are told, some do not. Goodput is answers a second once the queue is full, as a
ratio to the peak.

CPU time of the codec's process is told for three kinds of requests with a prompt of 5,000 words:
one that is answered (a single token), one that is refused to a caller it does not know, and one
that is refused to a caller that came too early.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc

from bench.codec_stream import wait_until_ready
from bench.impatience import MESSAGES, PATIENCE_S, Asked, Tally, arriving
from bench.ratio import Ratio
from bench.raw_http import Connection
from bench.service_process import ROOT, ServiceProcess, service, service_process
from services.shared.channel import open_channel

TIMES = 5
SLOTS = 8
STEP_US = 20_000
TOKENS = 40
WAITING = 32
"""Four times what runs: a wait of four answers' time, which clients have the patience for."""

TOLD_S = 1.0
"""By then a load has come to the codec."""

WORDS = 5_000
WORKERS = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """The codec's process, the router's address, and how the model is called."""

    codec: ServiceProcess
    router: str
    model: str

    @property
    def address(self) -> str:
        return self.codec.doors["http"]


@contextmanager
def running(folder: Path, step_us: float = STEP_US) -> Iterator[Running]:
    simulated = {"model_path": str(folder), "simulate": True, "context_length": 200_000}
    engine = {
        "server": {"port": 0},
        "service": {"batching": {"max_batch_size": SLOTS, "token_budget": 16_384}},
        "executor": {**simulated, "simulation": {"step_us": step_us, "token_us": 0}},
    }
    queue = {"service": {"queue": {"max_waiting": WAITING}}}
    with (
        service("services.engine", engine) as behind,
        service("services.router", {"server": {"port": 0}, "replicas": [behind], **queue}) as door,
        service_process(
            "services.codec",
            {
                "server": {"port": 0, "grpc_port": 0},
                "executor": {"model_path": str(folder)},
                "inference_engine": {"endpoint": door},
            },
        ) as codec,
    ):
        wait_until_ready(codec)
        yield Running(codec=codec, router=door, model=folder.name)


async def peak(stack: Running, duration_s: float) -> float:
    """Answers a second to twice as many clients as there are places, so that none is ever free."""
    asked = Asked(model=stack.model, words=20, max_tokens=TOKENS)
    begin = time.monotonic()
    end = begin + duration_s
    done: list[float] = []

    async def worker(number: int) -> None:
        connection = Connection(stack.address)
        while time.monotonic() < end:
            answer = await connection.ask(asked.request(MESSAGES, f"peak-{number}-{len(done)}"))
            if answer.status != 200:
                raise RuntimeError(f"no overload yet, and the codec answers {answer.status}")
            done.append(time.monotonic())
        connection.close()

    await asyncio.gather(*(worker(number) for number in range(2 * SLOTS)))
    settled = begin + duration_s / 4
    return sum(settled <= at < end for at in done) / (end - settled)


async def overloaded(stack: Running, rate: float, duration_s: float) -> tuple[float, Tally]:
    """Answers a second in the later half of an overload."""
    asked = Asked(model=stack.model, words=20, max_tokens=TOKENS)
    begin = time.monotonic()
    tally = await arriving(stack.address, asked, rate, duration_s)
    settled, end = begin + duration_s / 2, begin + duration_s
    return tally.good_within(settled, end) / (end - settled), tally


async def each_costs(
    stack: Running, count: int, ask: Callable[[Connection, int], Awaitable[None]]
) -> float:
    """Microseconds of the codec's CPU time for one of `count` requests."""
    numbers = iter(range(count))

    async def worker() -> None:
        connection = Connection(stack.address)
        for number in numbers:
            await ask(connection, number)
        connection.close()

    before = stack.codec.cpu_seconds()
    await asyncio.gather(*(worker() for _ in range(WORKERS)))
    return 1e6 * (stack.codec.cpu_seconds() - before) / count


async def admission_us(stack: Running, count: int) -> float:
    asked = Asked(model=stack.model, words=WORDS, max_tokens=1)

    async def ask(connection: Connection, number: int) -> None:
        answer = await connection.ask(asked.request(MESSAGES, f"admitted-{number}"))
        if answer.status != 200:
            raise RuntimeError(f"expected an answer, got {answer.status}")

    return await each_costs(stack, count, ask)


async def refusals_us(stack: Running, count: int) -> tuple[float, float]:
    """Of callers that are not known, and of one that comes again too early."""
    asked = Asked(model=stack.model, words=WORDS, max_tokens=1)
    new = [asked.request(MESSAGES, f"refused-{number}") for number in range(count)]

    async def refused(connection: Connection, request: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            answer = await connection.ask(request)
        if answer.status != 529:
            raise RuntimeError(f"expected a refusal, got {answer.status}")

    holders = Asked(model=stack.model, words=20, max_tokens=100_000)
    async with asyncio.TaskGroup() as group:
        holding = [
            group.create_task(held(stack, holders.request(MESSAGES, f"held-{number}")))
            for number in range(2 * (SLOTS + WAITING))
        ]
        await until_refusing(stack.router)
        first = await each_costs(stack, count, lambda link, number: refused(link, new[number]))
        again = await each_costs(stack, count, lambda link, _: refused(link, new[0]))
        for task in holding:
            task.cancel()
    return first, again


async def held(stack: Running, request: bytes) -> None:
    connection = Connection(stack.address)
    try:
        await connection.ask(request)
    finally:
        connection.close()


async def until_refusing(router: str) -> None:
    """Until the router's queue is full and the codec has heard of it."""
    async with asyncio.timeout(PATIENCE_S), open_channel(router) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        while not (await stub.Describe(engine_pb2.DescribeRequest())).load.refusing:  # noqa: ASYNC110 another process
            await asyncio.sleep(0.1)
    await asyncio.sleep(TOLD_S)


def show(text: str) -> None:
    print(f"{text}, load average {os.getloadavg()[0]:.1f}", flush=True)


def measure_costs(folder: Path, count: int) -> list[Ratio]:
    with running(folder, step_us=1000) as stack:
        admission = asyncio.run(admission_us(stack, count))
    with running(folder) as stack:
        first, again = asyncio.run(refusals_us(stack, count))
    show(f"codec: {admission:.0f} us of CPU an admission, {first:.0f} a refusal, {again:.0f} again")
    return [
        Ratio(name="refusal_cpu_over_admission", value=first / admission),
        Ratio(name="repeated_refusal_cpu_over_admission", value=again / admission),
    ]


def measure_goodput(folder: Path, duration_s: float) -> Ratio:
    with running(folder) as stack:
        best = asyncio.run(peak(stack, duration_s))
        show(f"peak: {best:.1f} answers a second")
        good, tally = asyncio.run(overloaded(stack, TIMES * best, duration_s))
        told = ", ".join(f"{count} times {status}" for status, count in tally.statuses.items())
        show(f"{TIMES} times that: {good:.1f} a second; {told}; {tally.given_up} gave up")
    return Ratio(name="goodput_over_peak", value=good / best, aim=">= 0.9")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--duration", type=float, default=60, help="seconds of a phase (60)")
    parser.add_argument(
        "--requests", type=int, default=400, help="of each kind, for CPU time (400)"
    )
    options = parser.parse_args()
    for ratio in measure_costs(options.model, options.requests):
        print(ratio, flush=True)
    print(measure_goodput(options.model, options.duration), flush=True)


if __name__ == "__main__":
    main()
