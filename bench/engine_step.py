"""What a step of the engine costs beyond its linear layers, at 1, 8 and 32 sequences of 128 tokens.

A step is all of it: commands, scheduling, forward pass, a draw for each sequence at temperature 1,
events. The sides take turns in one process, so that a busy machine slows them alike; the least time
of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.step_loop import StepLoop, generation, real_parts
from services.engine.parts import Parts
from services.engine.runner import Runner
from services.engine.scheduler import Limits
from services.shared.stream.generation import Sampling

DEFAULT_MODEL = ROOT / ".cache/models/smollm2-135m-instruct"
AIMS = {1: ">= 0.8", 8: ">= 0.75", 32: ">= 0.7"}
CONTEXT = 128
LIMITS = Limits(max_batch_size=max(AIMS), token_budget=CONTEXT)

Side = Callable[[], object]


def linear_layers(runner: Runner, rows: int) -> Side:
    """All linear layers of a step, with nothing between them."""
    import torch  # noqa: PLC0415  # torch takes up its threads when it is imported

    from services.engine.model_runner import ModelRunner  # noqa: PLC0415  # as above

    if not isinstance(runner, ModelRunner):
        raise TypeError("a simulated model has no linear layers")
    model = runner.model
    narrow = torch.randn(rows, model.config.hidden_size)
    wide = torch.randn(rows, model.config.intermediate_size)

    def compute() -> None:
        for layer in model.layers:
            layer.qkv(narrow)
            layer.out(narrow)
            layer.gate_up(narrow)
            layer.down(wide)
        model.lm_head(narrow)

    return compute


def whole_step(parts: Parts, sequences: int, rounds: int) -> Side:
    """One step of a loop whose sequences have their prompts behind them."""
    steps = StepLoop(parts, LIMITS, lambda _: None)
    steps.add(
        [
            replace(
                generation(number, CONTEXT - rounds // 2, 2 * rounds),
                sampling=Sampling(seed=number),
            )
            for number in range(sequences)
        ]
    )
    while any(sequence.remaining > 1 or not sequence.blocks for sequence in steps.loop.scheduler):
        steps.loop.step()
    return steps.loop.step


def least_ms(sides: tuple[Side, Side], rounds: int) -> list[float]:
    """The least time of each side over `rounds`, in which they take turns."""
    least = [float("inf")] * len(sides)
    for _ in range(rounds):
        for number, side in enumerate(sides):
            began = time.perf_counter()
            side()
            least[number] = min(least[number], (time.perf_counter() - began) * 1000)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    parts = real_parts(options.model)
    for sequences, aim in AIMS.items():
        sides = (
            linear_layers(parts.runner, sequences),
            whole_step(parts, sequences, options.rounds),
        )
        linear, step = least_ms(sides, options.rounds)
        print(f"{sequences} sequences: linear layers {linear:.2f} ms, step {step:.2f} ms")
        print(Ratio(name=f"linear_over_step_{sequences}", value=linear / step, aim=aim))


if __name__ == "__main__":
    main()
