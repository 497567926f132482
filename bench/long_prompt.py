"""How long running streams wait when a long prompt arrives, with its prefill in chunks and at once.

Eight streams run on a real engine's step loop; once each has a few tokens, a prompt of 4,000 tokens
comes. The longest gap between two tokens of a stream is told over the median gap. Neighbours on
the machine only lengthen gaps, so the best of some rounds counts; at once, one round tells enough.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.step_loop import StepLoop, generation, real_parts
from services.engine.loop import Results
from services.engine.parts import Parts
from services.engine.scheduler import Limits
from services.engine.settings import BatchingSettings
from services.shared.stream.events import Tokens

STREAMS = 8
STREAM_PROMPT = 32
STREAM_TOKENS = 160
BEFORE = 32
LONG_PROMPT = 4000
BATCHING = BatchingSettings()
BUDGETS = {"chunked": BATCHING.token_budget, "whole": LONG_PROMPT + 200}


class Arrivals:
    """When tokens came, by sequence."""

    def __init__(self) -> None:
        self.times: dict[int, list[float]] = {}

    def __call__(self, results: Results) -> None:
        now = time.perf_counter()
        for key, event in results:
            if isinstance(event, Tokens):
                self.times.setdefault(key, []).append(now)

    def gaps(self, keys: list[int]) -> list[float]:
        return [later - one for key in keys for one, later in pairwise(self.times[key])]


def longest_gap(parts: Parts, token_budget: int, first_number: int) -> float:
    """The longest gap between the streams' tokens, in median gaps."""
    arrivals = Arrivals()
    limits = Limits(max_batch_size=BATCHING.max_batch_size, token_budget=token_budget)
    steps = StepLoop(parts, limits, arrivals)
    numbers = range(first_number, first_number + STREAMS)
    keys = steps.add([generation(each, STREAM_PROMPT, STREAM_TOKENS) for each in numbers])
    while len(arrivals.times.get(keys[-1], ())) < BEFORE:
        steps.loop.step()
    long = steps.add([generation(first_number + STREAMS, LONG_PROMPT, 1)])
    while not steps.loop.scheduler.idle:
        steps.loop.step()
    _check(arrivals.times, keys[0], long[0])
    gaps = arrivals.gaps(keys)
    return max(gaps) / statistics.median(gaps)


def _check(times: Mapping[int, list[float]], stream: int, long: int) -> None:
    if not times[stream][BEFORE - 1] < times[long][0] < times[stream][-1]:
        raise RuntimeError("the long prompt was not computed while the streams ran")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    parts = real_parts(options.model)
    gaps: dict[str, list[float]] = {name: [] for name in BUDGETS}
    for number, name in enumerate(["whole", *["chunked"] * options.rounds]):
        gaps[name].append(longest_gap(parts, BUDGETS[name], number * (STREAMS + 1)))
        print(f"{name}: longest gap {gaps[name][-1]:.1f} of the median", flush=True)
    for name, known in gaps.items():
        print(Ratio(name=f"longest_gap_{name}", value=min(known)))


if __name__ == "__main__":
    main()
