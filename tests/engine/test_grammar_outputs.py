"""Outputs under a grammar: they obey it, whatever happens to them and to their neighbours."""

from __future__ import annotations

import json
import re

import pytest
from tokenizers import Tokenizer

from services.engine.grammar import Matcher
from services.engine.grammar_compiler import GrammarCompiler
from services.shared.errors import Code, InvalidRequest
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.events import Failed, Finished, FinishReason
from services.shared.stream.generation import Constraint, Stopping
from tests.engine.grammar_bed import compiler, constrained, lark, parts, regex, schema
from tests.engine.harness import Harness

PERSON = schema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"},
            "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
        },
        "required": ["name", "tags"],
        "additionalProperties": False,
    }
)
SUM = lark('start: NUMBER (" + " NUMBER){1,3}\nNUMBER: /[0-9]{1,3}/')
DATE = regex(r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]")
CONSTRAINTS = [PERSON, DATE, SUM, None]


@pytest.fixture(scope="module")
def grammars(model_folder: ModelFolder) -> GrammarCompiler:
    return compiler(model_folder)


@pytest.fixture(scope="module")
def tokenizer(model_folder: ModelFolder) -> Tokenizer:
    return Tokenizer.from_file(str(model_folder.file(TOKENIZER)))


@pytest.fixture(scope="module")
def alone(grammars: GrammarCompiler) -> list[list[int]]:
    """Outputs by number, each of an engine of its own."""
    return [output(grammars, number) for number in range(8)]


def output(grammars: GrammarCompiler, number: int) -> list[int]:
    harness = Harness(parts(grammars))
    key = harness.add(constrained(CONSTRAINTS[number % 4], number))
    harness.run()
    return harness.ids(key)


def test_outputs_obey_their_grammars(alone: list[list[int]], tokenizer: Tokenizer) -> None:
    texts = [tokenizer.decode(ids) for ids in alone]
    for number in (0, 4):
        person = json.loads(texts[number])
        assert re.fullmatch("[A-Z][a-z]{2,8}", person["name"])
        assert set(person["tags"]) <= {"red", "green"}
        assert re.fullmatch(DATE.source, texts[number + 1])
        assert re.fullmatch(r"\d{1,3}( \+ \d{1,3}){1,3}", texts[number + 2])


def test_neighbours_and_preemption_change_nothing(
    grammars: GrammarCompiler, alone: list[list[int]]
) -> None:
    harness = Harness(parts(grammars, blocks=20))
    keys = [harness.add(constrained(CONSTRAINTS[n % 4], n)) for n in range(8)]
    harness.run()
    assert [harness.ids(key) for key in keys] == alone
    ends = [harness.end(key) for key in keys]
    assert sum(end.timeline.preemptions for end in ends if isinstance(end, Finished)) > 0


@pytest.mark.parametrize("number", range(3))
def test_continuing_at_any_position_changes_nothing(
    grammars: GrammarCompiler, alone: list[list[int]], number: int
) -> None:
    """All positions at once: neighbours change nothing."""
    whole = alone[number]
    harness = Harness(parts(grammars))
    sequences = []
    for delivered in range(len(whole) + 1):
        given = constrained(CONSTRAINTS[number], number, whole[:delivered])
        sequence = harness.admission.admit(given)
        assert given.constraint is not None
        sequence.matcher = grammars.matcher(given.constraint, given.generated_ids)
        harness.loop.add(sequence)
        sequences.append(sequence)
    harness.run()
    for sequence in sequences:
        assert sequence.output_ids == whole
        end = harness.end(sequence.key)
        assert isinstance(end, Finished)
        assert end.usage.completion_tokens == len(whole)


def ends(
    grammars: GrammarCompiler, constraint: Constraint, stopping: Stopping
) -> tuple[list[int], FinishReason]:
    harness = Harness(parts(grammars))
    key = harness.add(constrained(constraint, stopping=stopping))
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Finished)
    return harness.ids(key), end.reason


def test_an_output_ends_when_nothing_may_follow(
    grammars: GrammarCompiler, tokenizer: Tokenizer
) -> None:
    ids, reason = ends(grammars, regex("yes|no"), Stopping(max_tokens=60))
    assert reason is FinishReason.CONSTRAINT_COMPLETE
    assert tokenizer.decode(ids) in {"yes", "no"}


def test_a_completed_grammar_wins_over_the_length(grammars: GrammarCompiler) -> None:
    ids, _ = ends(grammars, DATE, Stopping(max_tokens=60))
    assert ends(grammars, DATE, Stopping(max_tokens=len(ids))) == (
        ids,
        FinishReason.CONSTRAINT_COMPLETE,
    )


def test_min_tokens_cannot_ask_for_more_than_the_grammar_has(grammars: GrammarCompiler) -> None:
    stopping = Stopping(max_tokens=60, min_tokens=50)
    assert ends(grammars, DATE, stopping) == ends(grammars, DATE, Stopping(max_tokens=60))


def test_ignoring_the_end_of_text_does_not_go_beyond_the_grammar(grammars: GrammarCompiler) -> None:
    _, reason = ends(grammars, regex("a{0,3}"), Stopping(max_tokens=60, ignore_eos=True))
    assert reason is FinishReason.CONSTRAINT_COMPLETE


class Breaking:
    """A matcher that raises after some tokens."""

    complete = False

    def __init__(self, inner: Matcher, accepts: int, error: Exception) -> None:
        self._inner = inner
        self._left = accepts
        self._error = error

    def allowed(self) -> bytes:
        if self._left == 0 and isinstance(self._error, InvalidRequest):
            raise self._error
        return self._inner.allowed()

    def accept(self, token_id: int) -> None:
        if self._left == 0:
            raise self._error
        self._left -= 1
        self._inner.accept(token_id)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("token 7 is not allowed"), Code.INTERNAL),
        (InvalidRequest("constraint is too complex", field="constraint"), Code.INVALID_ARGUMENT),
    ],
)
def test_a_matcher_that_fails_ends_its_own_sequence_only(
    grammars: GrammarCompiler, alone: list[list[int]], error: Exception, code: Code
) -> None:
    harness = Harness(parts(grammars))
    keys = [harness.add(constrained(CONSTRAINTS[number % 4], number)) for number in range(4)]
    victim = harness.admission.admit(constrained(PERSON, 9))
    victim.matcher = Breaking(grammars.matcher(PERSON, []), 2, error)
    harness.loop.add(victim)
    harness.run()
    end = harness.end(victim.key)
    assert isinstance(end, Failed)
    assert (end.code, end.retryable) == (code, False)
    assert [harness.ids(key) for key in keys] == alone[:4]
    pool = harness.parts.pool
    assert pool.free + pool.cached == pool.count


def test_too_large_a_grammar_fails_in_the_middle_with_the_reason(
    grammars: GrammarCompiler,
) -> None:
    harness = Harness(parts(grammars))
    key = harness.add(constrained(lark('start: /[ab]/ "a"{1000000}')))
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Failed)
    assert end.code is Code.INVALID_ARGUMENT
    assert "too complex" in end.message
