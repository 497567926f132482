"""Constraints: what is refused, with what words, and how little it may cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.engine.grammar_compiler import GrammarCompiler
from services.shared.errors import InvalidRequest, Unsupported
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.generation import Constraint, ConstraintKind
from tests.engine.grammar_bed import END_OF_TEXT, compiler, lark, regex, schema


@pytest.fixture(scope="module")
def grammars(model_folder: ModelFolder) -> GrammarCompiler:
    return compiler(model_folder)


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        (schema({"type": "array", "uniqueItems": True}), "uniqueItems"),
        (schema({"properties": {"a": {"not": {}}}}), "not"),
        (schema({"type": "string", "format": "iri"}), "iri"),
        (schema({"type": "integer", "minimum": 5, "maximum": 3}), "minimum (5)"),
        (schema({"$ref": "http://example.com/schema"}), "example.com"),
        (schema({"$ref": "#"}), "no text fulfils it"),
        (schema({"not": {}, "x-guidance": {"lenient": True}}), "not"),
        (Constraint(ConstraintKind.JSON_SCHEMA, "{"), "JSON schema"),
        (Constraint(ConstraintKind.JSON_SCHEMA, "[]"), "object"),
        (regex("(a"), "unclosed group"),
        (regex(r"a\1"), "backreferences"),
        (regex("(?=a)b"), "look-around"),
        (regex(r"[^\s\S]"), "no text fulfils it"),
        (lark("start: ((("), "Expected token"),
        (lark('rule: "a"'), "start"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(
    grammars: GrammarCompiler, constraint: Constraint, told: str
) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        grammars.matcher(constraint, [])
    assert told in refusal.value.message
    assert len(refusal.value.message) < 400
    assert refusal.value.field == "constraint"


def nested(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


BOMBS: dict[str, Callable[[], Constraint]] = {
    "10 MB": lambda: schema({"description": "a" * 10_000_000}),
    "deep": lambda: Constraint(ConstraintKind.JSON_SCHEMA, nested(20_000)),
    "levels": lambda: Constraint(ConstraintKind.JSON_SCHEMA, nested(100)),
    "properties": lambda: schema({"properties": {f"p{index}": {} for index in range(600)}}),
    "values": lambda: schema({"enum": list(range(20_000))}),
    "pattern properties": lambda: schema({"patternProperties": {f"^{i}.": {} for i in range(99)}}),
    "patterns": lambda: schema({"anyOf": [{"pattern": "(a|b)?" * 400}] * 10}),
    "regex": lambda: regex("(a|b)?" * 40_000),
    "grammar": lambda: lark("\n".join(f'r{index}: "a"' for index in range(600_000))),
    "notation": lambda: lark("start: /" + "(a|b)?" * 10_000 + "/"),
    "hidden notation": lambda: lark('start: /%json {"a": "' + "(a|b)?" * 10_000 + '"}/'),
    "pattern in a grammar": lambda: lark(
        'start: %json {"pattern": "' + "(a|b)?" * 3000 + '"} "x"',
    ),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_what_is_too_large_is_refused_before_it_is_compiled(
    bomb: Callable[[], Constraint], model_folder: ModelFolder
) -> None:
    grammars = compiler(model_folder)
    with pytest.raises(InvalidRequest, match=r"at most|recursion"):
        grammars.matcher(bomb(), [])
    assert grammars._tokenizer is None


EXPENSIVE: dict[str, Constraint] = {
    "exponential unions": schema(
        {"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": 99 - i}]} for i in range(20)]}
    ),
    "doubled terminals": lark(
        "T0: /[ab]c?/\n"
        + "\n".join(f"T{i}: T{i - 1} T{i - 1}" for i in range(1, 30))
        + "\nstart: T29"
    ),
    "intersections": lark(
        "T0: /.*a.{20}/\n"
        + "\n".join(f"T{i}: /.*{chr(97 + i)}.{{{i + 10}}}/ & T{i - 1}" for i in range(1, 20))
        + "\nstart: T19"
    ),
    "large multiple": schema({"type": "integer", "multipleOf": 999_999_937}),
    "long optional": regex("(a|b)?" * 2000),
}


@pytest.mark.parametrize("constraint", EXPENSIVE.values(), ids=EXPENSIVE.keys())
def test_small_sources_of_large_grammars_run_into_the_compilers_limits(
    grammars: GrammarCompiler, constraint: Constraint
) -> None:
    with pytest.raises(InvalidRequest, match="constraint cannot be compiled"):
        grammars.matcher(constraint, [])


def test_a_grammar_may_hold_large_schemas_beside_a_little_notation(
    grammars: GrammarCompiler,
) -> None:
    tools = {"anyOf": [{"const": f"{'long ' * 30}{index}"} for index in range(300)]}
    assert any(grammars.matcher(lark(f'start: "<" %json {json.dumps(tools)} ">"'), []).allowed())


def test_a_long_text_that_is_forced_is_refused(grammars: GrammarCompiler) -> None:
    with pytest.raises(InvalidRequest, match="at most 4096 bytes that are forced, got 5000"):
        grammars.matcher(regex("a{5000}"), [])
    assert any(grammars.matcher(regex("a{4000}"), []).allowed())


def test_matchers_of_one_grammar_go_their_own_ways(grammars: GrammarCompiler) -> None:
    one, other = (grammars.matcher(regex("[ab]c?"), []) for _ in range(2))
    before = other.allowed()
    one.accept(79 if before[79 // 8] >> (79 % 8) & 1 else allowed_ids(before)[0])
    assert one.allowed() != before
    assert other.allowed() == before


def test_outputs_that_break_the_constraint_are_named(grammars: GrammarCompiler) -> None:
    first = allowed_ids(grammars.matcher(regex("a{9}"), []).allowed())[0]
    with pytest.raises(InvalidRequest) as refusal:
        grammars.matcher(regex("a{9}"), [first, 2])
    assert refusal.value.field == "generated_ids[1]"


def test_a_refused_token_is_an_error(grammars: GrammarCompiler) -> None:
    matcher = grammars.matcher(regex("abc"), [])
    matcher.allowed()
    with pytest.raises(ValueError, match="token 2 is not allowed"):
        matcher.accept(2)


def test_a_tokenizer_without_grammars_is_told(model_folder: ModelFolder) -> None:
    grammars = GrammarCompiler(model_folder.file(TOKENIZER), 100, END_OF_TEXT, 0)
    with pytest.raises(Unsupported, match="tokenizer"):
        grammars.matcher(regex("a"), [])


def allowed_ids(mask: bytes) -> list[int]:
    return [index for index in range(8 * len(mask)) if mask[index // 8] >> index % 8 & 1]


KEYWORDS = ["type", "enum", "items", "minItems", "maxItems", "pattern", "minLength", "maxLength"]
KEYWORDS += ["minimum", "maximum", "multipleOf", "properties", "required", "anyOf", "oneOf", "$ref"]
KEYWORDS += ["allOf", "format", "const", "additionalProperties", "patternProperties", "prefixItems"]
TYPES = ["string", "integer", "number", "object", "array", "boolean", "null"]

scalars: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([*TYPES, "#", "#/properties/a", "^a+$", "(", "date"]),
    st.none(),
    st.booleans(),
    st.integers(-3, 2**40),
    st.floats(allow_nan=False),
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(KEYWORDS) | st.sampled_from("ab"), inner, max_size=5)
    return named | st.lists(inner, max_size=3)


schemas = st.dictionaries(
    st.sampled_from(KEYWORDS), st.recursive(scalars, containers, max_leaves=12), max_size=5
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=schemas)
def test_any_schema_is_compiled_or_refused(grammars: GrammarCompiler, value: Any) -> None:
    constraint = Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(value))
    try:
        matcher = grammars.matcher(constraint, [])
    except InvalidRequest:
        return
    assert any(matcher.allowed())


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from([ConstraintKind.REGEX, ConstraintKind.GRAMMAR]),
    source=st.text(max_size=40)
    | st.text(alphabet='ab(|)*+?{}[]^$.\\":/ \nstart%&~<>12', max_size=40),
)
def test_any_notation_is_compiled_or_refused(
    grammars: GrammarCompiler, kind: ConstraintKind, source: str
) -> None:
    try:
        grammars.matcher(Constraint(kind, source), []).allowed()
    except InvalidRequest:
        return
