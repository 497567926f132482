"""Grammars that are kept: for the tenant alone, and within bytes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.engine.eviction import TENANTS_SHARE
from services.engine.grammar_cache import COMPILED_BYTES, GRAMMAR_BYTES
from services.engine.grammar_compiler import GrammarCompiler
from services.engine.grammar_limits import AUTOMATON_BYTES, MAX_STATES, states_within
from services.shared.model_folder import ModelFolder
from services.shared.stream.generation import Constraint
from tests.engine.grammar_bed import CACHE_BYTES, compiler, lark, parts, regex, schema
from tests.engine.schema_flood import write
from tests.engine.served import served
from tests.examples import examples

ROOT = Path(__file__).parents[2]
KEPT = CACHE_BYTES // GRAMMAR_BYTES
SCHEMAS = 10_000


@pytest.fixture
def grammars(model_folder: ModelFolder) -> GrammarCompiler:
    return compiler(model_folder)


def is_kept(grammars: GrammarCompiler, constraint: Constraint, tenant: str = "") -> bool:
    found = grammars.cache.take(constraint, tenant)
    if found is None:
        return False
    grammars.cache.put(constraint, tenant, found)
    return True


def test_as_many_are_kept_as_fit_when_each_is_as_large_as_it_can_become(
    grammars: GrammarCompiler,
) -> None:
    constraints = [regex(f"a{{{number + 1}}}") for number in range(KEPT + 1)]
    for constraint in constraints[:KEPT]:
        grammars.matcher(constraint, [])
    grammars.matcher(constraints[0], [])
    grammars.matcher(constraints[KEPT], [])
    assert len(grammars.cache) == KEPT
    assert not is_kept(grammars, constraints[1])
    assert is_kept(grammars, constraints[0])


def test_without_memory_none_is_kept(model_folder: ModelFolder) -> None:
    path = model_folder.path / "tokenizer.json"
    grammars = GrammarCompiler(path, 49152, frozenset({2}), GRAMMAR_BYTES - 1)
    assert any(grammars.matcher(regex("a"), []).allowed())
    assert len(grammars.cache) == 0


def test_a_flood_of_one_tenant_leaves_another_its_share(grammars: GrammarCompiler) -> None:
    mine = [regex(f"m{{{number + 1}}}") for number in range(KEPT // TENANTS_SHARE // 2)]
    for constraint in mine:
        grammars.matcher(constraint, [], "acme")
    for number in range(3 * KEPT):
        grammars.matcher(regex(f"f{{{number + 1}}}"), [], "spy")
    assert mine
    assert all(is_kept(grammars, constraint, "acme") for constraint in mine)
    assert len(grammars.cache) == KEPT


async def test_what_a_tenant_used_is_compiled_anew_for_another(grammars: GrammarCompiler) -> None:
    async with served(parts(grammars)) as subject:
        for tenant in ("acme", "spy", "spy", None):
            request = pb.GenerateRequest(
                request_id="r",
                prompt_ids=[1, 400],
                stopping=types.Stopping(max_tokens=4),
                constraint=types.Constraint(regex="yes|no"),
                quality_of_service=types.QualityOfService(tenant=tenant),
            )
            assert [event async for event in subject.stream.Generate(request)]
    assert all(is_kept(grammars, regex("yes|no"), tenant) for tenant in ("acme", "spy", ""))
    assert len(grammars.cache) == 3


def test_a_lexer_that_met_its_limit_is_not_shared_any_more(grammars: GrammarCompiler) -> None:
    """Its copies all end as the one did that met it."""
    wide = lark(
        "start: " + " | ".join(f"T{number}" for number in range(200)) + "\n"
        + "\n".join(f"T{n}: /.*{chr(97 + n % 26)}.{{{n + 5}}}/" for n in range(200))
    )  # fmt: skip
    assert not write(grammars.matcher(wide, []), 500, random.Random(3))  # noqa: S311
    assert any(grammars.matcher(wide, []).allowed())


@pytest.mark.parametrize(
    ("constraint", "characters"),
    [
        (schema({"type": "string", "maxLength": 3000}), 0),
        (schema({"properties": {name: {"pattern": "x" * 500} for name in "abcd"}}), 500),
        (schema({"anyOf": [{"pattern": "x" * 500}] * 4}), 2000),
        (schema({"patternProperties": {"x" * 500: {}, "y" * 500: {}}}), 1000),
        (regex("ab" * 500), 1000),
        (lark("start: A B\nA: /" + "a" * 498 + "/\nB: A{3}"), 500 + 3 * 8),
        (lark('start: %json {"pattern": "' + "x" * 500 + '"} | %json {"pattern": "y"}'), 501),
    ],
)
def test_the_more_patterns_are_in_question_the_fewer_states_may_be(
    constraint: Constraint, characters: int
) -> None:
    expected = AUTOMATON_BYTES // (1300 + 12 * characters)
    assert states_within(constraint) == min(MAX_STATES, expected)


def told_of(way: str, folder: ModelFolder, count: int) -> dict[str, int]:
    """What `schema_flood` tells of a process of its own."""
    program = [sys.executable, "-m", "tests.engine.schema_flood"]
    command = [*program, way, str(folder.path), str(count)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)  # noqa: S603
    told: dict[str, int] = json.loads(done.stdout)
    return told


def test_thousands_of_different_schemas_leave_what_a_few_do(model_folder: ModelFolder) -> None:
    told = told_of("flood", model_folder, examples(SCHEMAS))
    assert told["answered"] == examples(SCHEMAS)
    assert told["kept"] == KEPT
    assert told["grown_bytes"] < 32 * 2**20


@pytest.mark.parametrize("wide", [40, 100, 200])
def test_a_grammar_takes_no_more_than_it_counts(model_folder: ModelFolder, wide: int) -> None:
    """Alternatives that all stay in question make each state large."""
    told = told_of("grow", model_folder, wide)
    assert 0 < told["grown_bytes"] < COMPILED_BYTES + AUTOMATON_BYTES
