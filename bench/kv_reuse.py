"""The first token of a prompt whose beginning another engine has computed, over computing it.

An engine answers a prompt of 2,000 tokens. A second engine that was started fresh is asked for the
same prompt with another end, and finds its blocks in a file that both share, in Redis, or at the
first engine; and, after a restart of all, in the file. The time to its first token is told over
that for a prompt of the same length that nobody has seen. Of some rounds the median counts.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.ratio import Ratio
from bench.service_process import ROOT, service
from bench.token_door import TokenDoor

SHARED = 2000
END = 16
ROUNDS = 5
REDIS = shutil.which("redis-server") or "redis-server"
UNSEEN = itertools.count(1000)
"""Numbers of prompts that no engine of this run has seen."""

TIERS = ("embedded", "redis", "peer")


def prompt(number: int, end: int) -> list[int]:
    """Prompts of one number share their first SHARED tokens."""
    begin = [(number * 7919 + index * 31) % 40_000 + 100 for index in range(SHARED)]
    return begin + [(end * 101 + index) % 40_000 + 100 for index in range(END)]


@contextmanager
def redis() -> Iterator[str]:
    """The address of a server with 2 GB."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no"}
    options |= {"maxmemory": "2gb", "maxmemory-policy": "allkeys-lru"}
    command = [text for key, value in options.items() for text in (f"--{key}", str(value))]
    with subprocess.Popen([REDIS, *command], stdout=subprocess.DEVNULL) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


class Machine:
    """Engines one after the other, with one service cache."""

    def __init__(self, model: Path, cache: Mapping[str, Any]) -> None:
        self._settings = {
            "server": {"port": 0},
            "executor": {"model_path": str(model), "device": "cpu", "threads": 2},
            "cache": cache,
        }

    @contextmanager
    def engine(self) -> Iterator[str]:
        with service("services.engine", self._settings) as address:
            yield address


async def seen(door: TokenDoor, numbers: range, *, wait: bool) -> None:
    """Has the engine answer the prompts, and waits until their blocks are in the service cache."""
    for number in numbers:
        await door.generate(prompt(number, 0), 1)
        blocks = (number - numbers.start + 1) * (SHARED // 16)

        async def written(blocks: int = blocks) -> bool:
            stats = await door.stats()
            return sum(tier.written_blocks for tier in stats.tiers) >= blocks

        if wait:
            await door.until(written)


async def timed(door: TokenDoor, numbers: range, peer: str | None) -> tuple[float, float]:
    """Seconds to the first token of prompts that were seen, and of such that were not."""
    found, computed = [], []
    await door.generate(prompt(next(UNSEEN), 0), 1)
    for number in numbers:
        output = await door.generate(prompt(number, 1), 1, peer)
        cached = output.cached.peer + output.cached.service
        if cached < SHARED - 16:
            raise RuntimeError(f"{cached} of {SHARED} tokens came from elsewhere")
        found.append(output.first_token_s)
        computed.append((await door.generate(prompt(next(UNSEEN), 1), 1)).first_token_s)
    return statistics.median(found), statistics.median(computed)


async def tier(name: str, machine: Machine, rounds: int) -> list[Ratio]:
    """The ratio of one tier; of the file also after a restart."""
    numbers = range(rounds)
    ratios = []
    async with AsyncExitStack() as doors:
        with machine.engine() as first:
            begun = TokenDoor(first)
            doors.push_async_callback(begun.close)
            await seen(begun, numbers, wait=name != "peer")
            with machine.engine() as second:
                ratios.append(await _told(name, second, numbers, first if name == "peer" else None))
        if name == "embedded":
            with machine.engine() as restarted:
                ratios.append(await _told("embedded_after_restart", restarted, numbers, None))
    return ratios


async def _told(name: str, address: str, numbers: range, peer: str | None) -> Ratio:
    door = TokenDoor(address)
    found, computed = await timed(door, numbers, peer)
    await door.close()
    print(f"{name}: first token {found * 1e3:.0f} ms, computed {computed * 1e3:.0f} ms", flush=True)
    return Ratio(name=f"first_token_{name}", value=found / computed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    ratios: list[Ratio] = []
    for name in TIERS:
        with ExitStack() as stack:
            cache: dict[str, Any] = {"type": "none"}
            if name == "embedded":
                folder = tempfile.mkdtemp()
                stack.callback(shutil.rmtree, folder)
                cache = {"type": "embedded", "embedded": {"path": folder}}
            elif name == "redis":
                nodes = [stack.enter_context(redis())]
                cache = {"type": "distributed", "distributed": {"nodes": nodes}}
            machine = Machine(options.model, cache)
            ratios += asyncio.run(tier(name, machine, options.rounds))
    for ratio in ratios:
        print(ratio)


if __name__ == "__main__":
    main()
