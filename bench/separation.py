"""How long running streams wait while long prompts arrive, with prefill apart and in one engine.

Eight streams run through a router; once each has some tokens, prompts of 2,000 tokens come one
after the other. Once two engines stand behind the router, one for prefill and one for decode, with
a thread each, and once a single engine for both with two threads. The longest gap between two
tokens of a stream is told over the median gap of the same streams before the prompts came. Of two
cores one then computes prompts and the other decodes, so a stream has half of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import grpc

from bench.ratio import Ratio
from bench.service_process import ROOT, service
from bench.token_door import Output, TokenDoor
from services.engine.settings import BatchingSettings

STREAMS = 8
STREAM_PROMPT = 32
STREAM_TOKENS = 300
BEFORE = 40
LONG_PROMPT = 2000
LONG_PROMPTS = 3
SLOTS = BatchingSettings().max_batch_size

LAYOUTS = {"apart": (("prefill", 1), ("decode", 1)), "together": (("both", 2),)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gaps:
    """Seconds between tokens: the median before the prompts, the longest and the mean after."""

    before: float
    longest: float
    mean: float
    first_tokens: Sequence[float]


@contextmanager
def routed(model: Path, roles: Sequence[tuple[str, int]]) -> Iterator[str]:
    """The address of a router before engines of these roles and threads."""
    with ExitStack() as stack:
        engines = [
            stack.enter_context(
                service(
                    "services.engine",
                    {
                        "server": {"port": 0},
                        "executor": {
                            "model_path": str(model),
                            "device": "cpu",
                            "role": role,
                            "threads": threads,
                        },
                    },
                )
            )
            for role, threads in roles
        ]
        yield stack.enter_context(
            service("services.router", {"server": {"port": 0}, "replicas": engines})
        )


def prompt(number: int, length: int) -> list[int]:
    return [(number * 7919 + index * 31) % 40_000 + 100 for index in range(length)]


async def measured(address: str, engines: int, round_: int) -> Gaps:
    door = TokenDoor(address)
    try:
        await door.until(partial(_knows, door, engines))
        numbers = range(round_ * 100, round_ * 100 + STREAMS)
        async with asyncio.TaskGroup() as group:
            streams = [
                group.create_task(door.generate(prompt(number, STREAM_PROMPT), STREAM_TOKENS))
                for number in numbers
            ]
            await asyncio.sleep(0)
            longs = [
                group.create_task(_later(door, number))
                for number in range(round_ * 100 + 50, round_ * 100 + 50 + LONG_PROMPTS)
            ]
        return _gaps([stream.result() for stream in streams], [long.result() for long in longs])
    finally:
        await door.close()


async def _knows(door: TokenDoor, engines: int) -> bool:
    """Whether a router knows so many."""
    try:
        return (await door.load()).slots >= engines * SLOTS
    except grpc.aio.AioRpcError:
        return False


async def _later(door: TokenDoor, number: int) -> Output:
    """One of the long prompts, after the streams run and those before it."""

    async def running() -> bool:
        load = await door.load()
        return load.running >= STREAMS

    await door.until(running)
    await asyncio.sleep(1.5 * (number % 50 + 1))
    return await door.generate(prompt(number, LONG_PROMPT), 1)


def _gaps(streams: Sequence[Output], longs: Sequence[Output]) -> Gaps:
    began = min(long.asked for long in longs)
    ended = max(long.arrivals[0] for long in longs)
    before, after = [], []
    for stream in streams:
        for one, later in pairwise(stream.arrivals):
            if later <= began:
                before.append(later - one)
            elif one < ended:
                after.append(later - one)
    if not before or not after:
        raise RuntimeError("the prompts did not come while the streams ran")
    return Gaps(
        before=statistics.median(before),
        longest=max(after),
        mean=statistics.mean(after),
        first_tokens=[long.first_token_s for long in longs],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    longest: dict[str, float] = {}
    for name, roles in LAYOUTS.items():
        with routed(options.model, roles) as address:
            rounds = [
                asyncio.run(measured(address, len(roles), each)) for each in range(options.rounds)
            ]
        for gaps in rounds:
            print(
                f"{name}: gap {gaps.before * 1e3:.0f} ms before, longest {gaps.longest * 1e3:.0f}, "
                f"mean {gaps.mean * 1e3:.0f} while prompts came; their first tokens after "
                + ", ".join(f"{first:.1f} s" for first in gaps.first_tokens),
                flush=True,
            )
        longest[name] = min(gaps.longest for gaps in rounds)
    print(
        Ratio(name="longest_gap_apart_over_together", value=longest["apart"] / longest["together"])
    )


if __name__ == "__main__":
    main()
