"""What the bookkeeping of a step costs, over the time of a real step at one sequence.

The loop is the engine's own with a runner that computes nothing: commands, schedule, blocks, their
addresses, events and all. Times are of spans of a few blocks' tokens, as each block costs work of
its own; the least counts, since neighbours on the machine only add.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.step_loop import StepLoop, generation, real_parts
from services.engine.blocks import BlockPool
from services.engine.loop import Results
from services.engine.parts import BLOCK_SIZE, Parts
from services.engine.runner import Draw
from services.engine.scheduler import Limits, Work

RUNNING = (1, 64, 256)
PROMPT_TOKENS = 128
SPAN_STEPS = 2 * BLOCK_SIZE
LIMITS = Limits(max_batch_size=max(RUNNING), token_budget=max(RUNNING) * PROMPT_TOKENS)


class Instant:
    """A runner that draws the same token for all."""

    drawn_ns = 0

    def warm_up(self) -> None:
        pass

    def run(self, works: Sequence[Work]) -> list[Draw]:
        return [Draw(1000) for work in works if work.draws]


def step_ms(parts: Parts, running: int, spans: int) -> float:
    """The least mean time of a step over `spans` spans."""
    steps = StepLoop(parts, LIMITS, _forget)
    tokens = (spans + 1) * SPAN_STEPS
    steps.add([generation(number, PROMPT_TOKENS, tokens) for number in range(running)])
    return min(_span_ms(steps) for _ in range(spans + 1))


def _span_ms(steps: StepLoop) -> float:
    began = time.perf_counter()
    for _ in range(SPAN_STEPS):
        steps.loop.step()
    return (time.perf_counter() - began) * 1000 / SPAN_STEPS


def _forget(results: Results) -> None:
    del results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--spans", type=int, default=6)
    options = parser.parse_args()
    real = real_parts(options.model)
    real_ms = step_ms(real, 1, options.spans)
    print(f"a real step at 1 sequence: {real_ms:.1f} ms")
    blocks = max(RUNNING) * (PROMPT_TOKENS // BLOCK_SIZE + 2 * options.spans + 3)
    for running in RUNNING:
        parts = replace(real, pool=BlockPool(blocks, BLOCK_SIZE), runner=Instant())
        ms = step_ms(parts, running, options.spans)
        print(f"bookkeeping of a step at {running} sequences: {ms:.3f} ms")
        print(Ratio(name=f"scheduling_{running}", value=ms / real_ms))


if __name__ == "__main__":
    main()
