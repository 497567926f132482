"""What fetching a prompt's blocks takes out of the gaps between running streams' tokens.

An engine has answered prompts of 2,000 tokens and left their blocks in a file. Eight streams run
on a second one, which is then asked for these prompts, one after the other, and fetches 92 MB for
each. The mean gap of the streams while blocks are fetched is told over that of as long a time
after it, in which they run alone.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.kv_reuse import SHARED, Machine, prompt, seen
from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.token_door import Output, TokenDoor

STREAMS = 8
STREAM_PROMPT = 32
STREAM_TOKENS = 900
PROMPTS = 8
REST_S = 0.3


@dataclass(frozen=True, slots=True)
class Window:
    """A time on the clock of outputs."""

    began: float
    ended: float

    def gaps(self, streams: Sequence[Output]) -> list[float]:
        """Seconds between two tokens of a stream of which the later one came in the window."""
        return [
            later - one
            for stream in streams
            for one, later in pairwise(stream.arrivals)
            if self.began <= later <= self.ended
        ]


Windows = dict[str, list[Window]]


async def windows(door: TokenDoor, streams: Sequence[asyncio.Task[Output]]) -> Windows:
    """Times of fetches, and as long ones in which nothing else was asked."""
    fetching, alone = [], []
    for number in range(PROMPTS):
        output = await door.generate(prompt(number, 1), 1)
        if output.cached.service < SHARED - 16:
            raise RuntimeError(f"{output.cached.service} of {SHARED} tokens were fetched")
        fetching.append(Window(output.asked, output.asked + output.fetch_s))
        began = output.arrivals[0] + REST_S
        await asyncio.sleep(REST_S + output.fetch_s)
        alone.append(Window(began, began + output.fetch_s))
        if any(stream.done() for stream in streams):
            raise RuntimeError("the streams ended before the last prompt")
    return {"fetching": fetching, "alone": alone}


async def measured(model: Path, folder: str) -> dict[str, list[float]]:
    machine = Machine(model, {"type": "embedded", "embedded": {"path": folder}})
    with machine.engine() as first:
        door = TokenDoor(first)
        await seen(door, range(PROMPTS), wait=True)
        await door.close()
    with machine.engine() as second:
        door = TokenDoor(second)
        try:
            streams = [
                asyncio.ensure_future(door.generate(_stream(number), STREAM_TOKENS))
                for number in range(STREAMS)
            ]

            async def running() -> bool:
                return (await door.load()).running == STREAMS

            await door.until(running)
            told = await windows(door, streams)
            outputs = await asyncio.gather(*streams)
        finally:
            await door.close()
    return {name: [gap for window in told[name] for gap in window.gaps(outputs)] for name in told}


def _stream(number: int) -> list[int]:
    return prompt(5000 + number, 0)[:STREAM_PROMPT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        gaps = asyncio.run(measured(options.model, folder))
    for name, known in gaps.items():
        late = statistics.quantiles(known, n=20)[-1]
        figures = (statistics.median(known), statistics.mean(known), late, max(known))
        median, mean, p95, longest = (f"{1e3 * each:.0f}" for each in figures)
        print(f"{name}: {len(known)} gaps, median {median} ms, mean {mean}, p95 {p95}, {longest}")
    value = statistics.mean(gaps["fetching"]) / statistics.mean(gaps["alone"])
    print(Ratio(name="gap_while_fetching", value=value))


if __name__ == "__main__":
    main()
