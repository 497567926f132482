"""A simulated engine with SmolLM2's tokenizer, for outputs under a grammar."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.grammar import Grammars
from services.engine.grammar_cache import GRAMMAR_BYTES
from services.engine.grammar_compiler import GrammarCompiler
from services.engine.parts import Parts
from services.engine.simulated import CostModel, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.generation import (
    Constraint,
    ConstraintKind,
    Generation,
    Sampling,
    Stopping,
)

VOCABULARY = 49152
END_OF_TEXT = frozenset({2})


CACHE_BYTES = 4 * GRAMMAR_BYTES


def compiler(folder: ModelFolder) -> GrammarCompiler:
    return GrammarCompiler(folder.file(TOKENIZER), VOCABULARY, END_OF_TEXT, CACHE_BYTES)


def parts(grammars: Grammars, blocks: int = 200, size: int = 4) -> Parts:
    memory = SimulatedMemory(blocks, size)
    return Parts(
        model=ServedModel(
            name="test",
            fingerprint="f",
            vocabulary_size=VOCABULARY,
            context_length=min(512, blocks * size),
            end_of_text_ids=END_OF_TEXT,
            kv_layout_id="l",
        ),
        pool=BlockPool(blocks, size),
        runner=SimulatedRunner(range(300, VOCABULARY), memory, CostModel(step_us=0, token_us=0)),
        memory=memory,
        device="simulated",
        tokenizer_fingerprint="t",
        grammars=grammars,
    )


def schema(value: dict[str, Any]) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(value))


def regex(pattern: str) -> Constraint:
    return Constraint(ConstraintKind.REGEX, pattern)


def lark(source: str) -> Constraint:
    return Constraint(ConstraintKind.GRAMMAR, source)


def constrained(
    constraint: Constraint | None,
    number: int = 0,
    generated_ids: Sequence[int] = (),
    stopping: Stopping = Stopping(max_tokens=60),  # noqa: B008  # frozen
) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[1, *range(400 + number, 410 + number)],
        generated_ids=generated_ids,
        sampling=Sampling(seed=number),
        stopping=stopping,
        constraint=constraint,
    )
