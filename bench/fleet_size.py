"""What replicas and streams cost a router as they grow tenfold, and how soon it notices a death.

Replicas without a model stand in a process of their own and give each stream a token a beat. The
router's CPU time is read from the system: with no streams, while streams are placed, and while
tokens flow. Then one replica is killed and one is stopped (SIGSTOP): the longest silence of a
stream, in heartbeats of a second, is how long it took to notice and to go on elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from bench.ratio import Ratio
from bench.service_process import ServiceProcess, service_process
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Event, Failed, Tokens
from services.shared.stream.generation import Generation, Stopping
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from services.shared.tls.way import CLEAR

HEARTBEAT_S = 1.0
ENDLESS = 1_000_000
POLL_S = 0.01
PATIENCE_S = 120


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """Microseconds of the router's CPU; tokens a second that came to the client."""

    replicas: int
    streams: int
    idle_us: float
    place_us: float
    token_us: float
    tokens_per_s: float

    def __str__(self) -> str:
        return (
            f"{self.replicas} replicas, {self.streams} streams: {self.idle_us:.0f} us a second for "
            f"an idle replica, {self.place_us:.0f} us to place a stream, {self.token_us:.1f} us a "
            f"token, {self.tokens_per_s:,.0f} tokens/s"
        )


class Stream:
    """Counts the tokens of one stream and remembers its longest silence."""

    __slots__ = ("failed", "last", "silence_s", "tokens")

    def __init__(self) -> None:
        self.failed: Failed | None = None
        self.tokens = 0
        self.last = 0.0
        self.silence_s = 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Tokens):
            now = time.perf_counter()
            if self.tokens:
                self.silence_s = max(self.silence_s, now - self.last)
            self.last = now
            self.tokens += len(event.ids)
        elif isinstance(event, Failed):
            self.failed = event


class Client:
    """A session to the router and the streams on it."""

    def __init__(self, session: ClientSession, router: ServiceProcess) -> None:
        self.session = session
        self.router = router
        self.streams: list[Stream] = []

    async def place(self, count: int) -> float:
        """Microseconds of the router's CPU for each stream until its first token."""
        began = self.router.cpu_seconds()
        for number in range(count):
            stream = Stream()
            self.streams.append(stream)
            generation = Generation(
                request_id=f"bench-{number}",
                prompt_ids=range(number, number + 16),
                stopping=Stopping(max_tokens=ENDLESS),
            )
            self.session.submit(Submission(generation, "", stream))
        await until(lambda: all(stream.tokens or stream.failed for stream in self.streams))
        self._tokens()
        return (self.router.cpu_seconds() - began) / count * 1e6

    async def flow(self, seconds: float) -> tuple[float, float]:
        """Microseconds of the router's CPU for a token, and tokens a second."""
        tokens, cpu, began = self._tokens(), self.router.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(seconds)
        passed = self._tokens() - tokens
        if not passed:
            raise RuntimeError(f"expected tokens within {seconds} s, got none")
        lasted = time.perf_counter() - began
        return (self.router.cpu_seconds() - cpu) / passed * 1e6, passed / lasted

    async def silence(self, pid: int, number: signal.Signals) -> float:
        """The longest silence of a stream, in heartbeats, around a signal to a replica."""
        for stream in self.streams:
            stream.silence_s = 0.0
        os.kill(pid, number)
        began = time.perf_counter()
        await until(lambda: time.perf_counter() - began > HEARTBEAT_S)
        await until(
            lambda: all(
                stream.failed or stream.last > began + HEARTBEAT_S for stream in self.streams
            )
        )
        self._tokens()
        return max(stream.silence_s for stream in self.streams) / HEARTBEAT_S

    def _tokens(self) -> int:
        for stream in self.streams:
            if stream.failed is not None:
                raise stream.failed.error()
        return sum(stream.tokens for stream in self.streams)


async def until(condition: Callable[[], object]) -> None:
    """Returns when the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # it watches what has no event
            await asyncio.sleep(POLL_S)


@contextmanager
def replicas(count: int, beat_s: float) -> Iterator[ServiceProcess]:
    with service_process("bench.many_replicas", {"count": count, "beat_s": beat_s}) as running:
        yield running


@contextmanager
def router(addresses: list[str]) -> Iterator[ServiceProcess]:
    settings = {
        "server": {"port": 0},
        "replicas": addresses,
        "telemetry": {"log_level": "error"},
    }
    with service_process("services.router", settings) as running:
        yield running


@asynccontextmanager
async def client(running: ServiceProcess, count: int) -> AsyncIterator[Client]:
    """A session to a router that has heard of `count` replicas."""
    loads: list[Load | None] = []
    session = ClientSession(CLEAR, running.doors["grpc"], loads.append)
    task = asyncio.ensure_future(session.run())
    try:
        await until(lambda: loads and loads[-1] and loads[-1].total_blocks == count)
        yield Client(session, running)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await session.close()


async def costs(count: int, streams: int, options: argparse.Namespace) -> Costs:
    with (
        replicas(count, options.beat) as running,
        router(list(running.doors.values())) as middle,
    ):
        async with client(middle, count) as one:
            cpu = middle.cpu_seconds()
            await asyncio.sleep(options.seconds)
            idle_us = (middle.cpu_seconds() - cpu) / options.seconds / count * 1e6
            place_us = await one.place(streams)
            token_us, tokens_per_s = await one.flow(options.seconds)
    return Costs(
        replicas=count,
        streams=streams,
        idle_us=idle_us,
        place_us=place_us,
        token_us=token_us,
        tokens_per_s=tokens_per_s,
    )


async def notice(count: int, streams: int, options: argparse.Namespace) -> None:
    """Prints how long the death of a replica among `count` is felt."""
    for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
        with replicas(count - 1, options.beat) as most, replicas(1, options.beat) as one:
            addresses = [*most.doors.values(), *one.doors.values()]
            try:
                with router(addresses) as middle:
                    async with client(middle, count) as caller:
                        await caller.place(streams)
                        silence = await caller.silence(one.pid, number)
            finally:
                os.kill(one.pid, signal.SIGCONT)
        print(f"a replica {name}: its streams were silent for {silence:.2f} heartbeats", flush=True)


async def run(options: argparse.Namespace) -> None:
    few, many = options.replicas // 10, options.replicas
    low, high = options.streams // 10, options.streams
    measured = []
    for shape in ((few, low), (many, low), (many, high)):
        measured.append(await costs(*shape, options))
        print(measured[-1], flush=True)
    small, wide, large = measured
    await notice(many, high, options)
    print(Ratio(name="idle-replica-tenfold", value=wide.idle_us / small.idle_us))
    print(Ratio(name="place-tenfold-replicas", value=wide.place_us / small.place_us))
    print(Ratio(name="token-tenfold-streams", value=large.token_us / wide.token_us))
    print(Ratio(name="token-tenfold-both", value=large.token_us / small.token_us, aim="<= 2"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=200, help="the most; a tenth is the least")
    parser.add_argument("--streams", type=int, default=2000, help="the most; a tenth is the least")
    parser.add_argument("--beat", type=float, default=0.2, help="seconds between tokens (0.2)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement (10)")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
