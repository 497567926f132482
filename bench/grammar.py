"""What grammars cost in a step: masks and matchers of eight outputs against a free step of eight.

Both are taken from the engine's own parts on the real model. The least quarter of the times counts:
a neighbour on the machine only adds to them.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean

from bench.engine_step import DEFAULT_MODEL
from bench.ratio import Ratio
from bench.step_loop import StepLoop, generation, real_parts
from services.engine.parts import Parts
from services.engine.scheduler import Limits
from services.shared.stream.generation import Constraint, ConstraintKind

ROWS = 8
PROMPT = 32
STEPS = 40
LIMITS = Limits(max_batch_size=ROWS, token_budget=ROWS * PROMPT + 1)

# Strings leave most of the vocabulary open, what stands between them nearly nothing.
ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
SCHEMA = Constraint(
    ConstraintKind.JSON_SCHEMA, json.dumps({"type": "array", "items": ITEM, "minItems": 1000})
)


def step_times(steps: StepLoop, number: int) -> list[float]:
    """Milliseconds of each decode step."""
    steps.add([generation(number + row, PROMPT, STEPS) for row in range(ROWS)])
    steps.loop.step()
    times = []
    while not steps.loop.scheduler.idle:
        began = time.perf_counter()
        steps.loop.step()
        times.append(1000 * (time.perf_counter() - began))
    return times


def grammar_times(parts: Parts) -> list[float]:
    """Milliseconds that a step's grammars take, over random logits."""
    import torch  # noqa: PLC0415  # torch takes up its threads when it is imported

    from services.engine import grammar_mask  # noqa: PLC0415  # as above

    steps = StepLoop(parts, LIMITS, lambda _: None)
    steps.add([replace(generation(row, PROMPT, STEPS), constraint=SCHEMA) for row in range(ROWS)])
    sequences = list(steps.loop.scheduler)
    times = []
    for _ in range(STEPS * 4):
        logits = torch.randn(ROWS, parts.model.vocabulary_size)
        began = time.perf_counter()
        grammar_mask.apply(sequences, logits)
        masked = time.perf_counter()
        drawn = logits.argmax(dim=-1).tolist()
        drew = time.perf_counter()
        for sequence, token_id in zip(sequences, drawn, strict=True):
            sequence.append(token_id)
        times.append(1000 * (time.perf_counter() - drew + masked - began))
    return times


def least(times: list[float]) -> float:
    """The mean of the least quarter."""
    return mean(sorted(times)[: len(times) // 4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    parts = real_parts(options.model)
    steps = StepLoop(parts, LIMITS, lambda _: None)
    free: list[float] = []
    grammars: list[float] = []
    for number in range(0, options.rounds * 100, 100):
        free += step_times(steps, number)
        grammars += grammar_times(parts)
    free_ms, grammar_ms = least(free), least(grammars)
    print(f"a step of {ROWS} rows: {free_ms:.2f} ms, its grammars: {grammar_ms:.2f} ms")
    print(Ratio(name="grammars/step", value=grammar_ms / free_ms, aim="<= 0.05"))


if __name__ == "__main__":
    main()
