"""What formats, tools and reasoning make of an output's grammar, for each family of models."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from services.codec.constraint import Vocabulary, constraint_of
from services.codec.conversation import (
    Conversation,
    Role,
    Text,
    Tool,
    ToolChoice,
    ToolMode,
    Turn,
)
from services.codec.output.families import FAMILIES, HARMONY, HERMES, PLAIN, SMOLLM2
from services.codec.output.family import Family
from services.codec.request import (
    Grammar,
    JsonObject,
    JsonSchema,
    OutputFormat,
    ReasoningMode,
    ReasoningWish,
    Regex,
    Request,
)
from services.engine.grammar_cache import GRAMMAR_BYTES
from services.engine.grammar_compiler import GrammarCompiler
from services.shared.errors import InvalidRequest, Unsupported
from services.shared.model_folder import ModelFolder
from services.shared.stream.generation import Constraint, ConstraintKind
from tests.codec.family_tokenizer import family_tokenizer

WEATHER = Tool(
    name="get_weather",
    description=None,
    schema={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    strict=True,
)
TIME = Tool(
    name="get_time",
    description=None,
    schema={
        "type": "object",
        "properties": {"zone": {"enum": ["UTC", "CET"]}},
        "required": ["zone"],
        "additionalProperties": False,
        "propertyNames": {"maxLength": 9},
    },
)
REQUIRED = ToolChoice(mode=ToolMode.REQUIRED)
ANSWER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

JSON_FAMILIES = [family for family in FAMILIES.values() if family.call_text is not None]
THINKING = [family for family in FAMILIES.values() if family.thinking is not None]
OTHER_CALLS = ["qwen3-coder", "glm", "gemma4"]


def asked(
    tools: tuple[Tool, ...] = (),
    choice: ToolChoice = ToolChoice(),  # noqa: B008  # frozen
    output_format: OutputFormat | None = None,
) -> Request:
    turns = (Turn(Role.USER, (Text("hello"),)),)
    prompt = Conversation(turns=turns, tools=tools, tool_choice=choice)
    return Request(model="m", prompt=prompt, output_format=output_format)


def calls(family: Family, *given: tuple[str, str]) -> str:
    """Calls of tools with arguments, as the family writes them."""
    text = family.call_text
    assert text is not None
    bodies = [text.before + name + text.between + args + text.after for name, args in given]
    return text.opens + text.joins.join(bodies) + text.closes


@dataclass(frozen=True)
class Bench:
    """One family's vocabulary, and the engine's grammars for it."""

    family: Family
    vocabulary: Vocabulary
    grammars: GrammarCompiler
    tokenizer: Tokenizer

    def constraint(self, request: Request, *, is_reasoning: bool = False) -> Constraint | None:
        return constraint_of(request, self.family, self.vocabulary, is_reasoning=is_reasoning)

    def allows(self, request: Request, text: str, *, is_reasoning: bool = False) -> bool:
        """Whether the text is a whole output."""
        constraint = self.constraint(request, is_reasoning=is_reasoning)
        assert constraint is not None
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        try:
            self.grammars.matcher(constraint, [*ids, 2])
        except InvalidRequest as error:
            assert error.field != "constraint", error.message  # noqa: PT017  # which one it is
            return False
        return True


MakeBench = Callable[[Family], Bench]


@pytest.fixture(scope="module")
def bench_of(model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> MakeBench:
    made: dict[str, Bench] = {}

    def make(family: Family) -> Bench:
        if family.name not in made:
            path = tmp_path_factory.mktemp(family.name) / "tokenizer.json"
            # SmolLM2 has no such tokens, and others are read from text as well.
            is_text = family is SMOLLM2
            vocabulary = family_tokenizer(PLAIN if is_text else family, model_folder, Path(path))
            made[family.name] = Bench(
                family,
                vocabulary,
                GrammarCompiler(path, vocabulary.size, frozenset({2}), GRAMMAR_BYTES),
                Tokenizer.from_file(str(path)),
            )
        return made[family.name]

    return make


def final(family: Family) -> str:
    return "<|channel|>final<|message|>" if family.channels is not None else ""


@pytest.mark.parametrize("family", JSON_FAMILIES, ids=lambda family: family.name)
def test_a_demanded_call_is_one_of_a_tool_that_there_is(
    bench_of: MakeBench, family: Family
) -> None:
    bench = bench_of(family)
    request = asked((WEATHER, TIME), REQUIRED)
    rome, utc = ("get_weather", '{"city": "Rome", "days":2}'), ("get_time", '{"zone": "UTC"}')
    assert bench.allows(request, calls(family, rome))
    assert bench.allows(request, calls(family, utc, rome, rome))
    assert not bench.allows(request, calls(family, ("get_weather", '{"days": 2}')))
    assert not bench.allows(request, calls(family, ("get_time", '{"zone": "X"}')))
    assert not bench.allows(request, calls(family, ("get_news", "{}")))
    assert not bench.allows(request, f"{final(family)}hello")


@pytest.mark.parametrize("family", JSON_FAMILIES, ids=lambda family: family.name)
def test_a_named_tool_is_the_only_one(bench_of: MakeBench, family: Family) -> None:
    bench = bench_of(family)
    choice = ToolChoice(mode=ToolMode.REQUIRED, names=("get_time",), parallel=False)
    request = asked((WEATHER, TIME), choice)
    utc = ("get_time", '{"zone": "UTC"}')
    assert bench.allows(request, calls(family, utc))
    assert not bench.allows(request, calls(family, ("get_weather", '{"city": "Rome"}')))
    if calls(family, utc, utc) != calls(family, utc) * 2:
        assert not bench.allows(request, calls(family, utc, utc))


@pytest.mark.parametrize("name", OTHER_CALLS)
def test_families_with_other_arguments_are_made_to_begin_a_call(
    bench_of: MakeBench, name: str
) -> None:
    bench = bench_of(FAMILIES[name])
    request = asked((WEATHER,), REQUIRED)
    form = FAMILIES[name].calls
    assert form is not None
    head = {
        "qwen3-coder": "<tool_call>\n<function=get_weather>\n",
        "glm": "<tool_call>get_weather\n",
        "gemma4": "<|tool_call>call:get_weather{",
    }[name]
    assert bench.allows(request, f"{head}anything{form.closes[0]}")
    assert not bench.allows(request, "hello")
    assert not bench.allows(request, head.replace("weather", "news"))


@pytest.mark.parametrize("family", JSON_FAMILIES, ids=lambda family: family.name)
def test_strict_tools_leave_text_free_and_bind_calls(bench_of: MakeBench, family: Family) -> None:
    bench = bench_of(family)
    request = asked((WEATHER,))
    text = family.call_text
    assert text is not None
    if not text.opens and family.channels is None:
        assert bench.constraint(request) is None
        return
    begun = "" if family.channels is not None else "Let me see. "
    assert bench.allows(request, f"{final(family)}It is <warm> there.\n{{}}")
    assert bench.allows(request, begun + calls(family, ("get_weather", '{"city": "Rome"}')))
    assert not bench.allows(request, begun + calls(family, ("get_weather", '{"city": 1}')))


def test_what_binds_nothing_is_no_constraint(bench_of: MakeBench) -> None:
    bench = bench_of(HERMES)
    assert bench.constraint(asked()) is None
    assert bench.constraint(asked((TIME,))) is None
    assert bench.constraint(asked((WEATHER,), ToolChoice(mode=ToolMode.NONE))) is None


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_a_format_binds_the_text_and_not_the_calls(bench_of: MakeBench, family: Family) -> None:
    bench, head = bench_of(family), final(family)
    request = asked((TIME,), output_format=JsonSchema(ANSWER))
    assert bench.allows(request, f'{head}{{"a": 1}}')
    assert bench.allows(request, f'{head}{{"a":1, "name": "get_time", "b": [{{}}]}}')
    assert not bench.allows(request, f'{head}{{"a": "1"}}')
    if family.call_text is not None:
        assert bench.allows(request, calls(family, ("get_time", '{"zone": "CET"}')))
    hidden = replace(request, prompt=asked((TIME,), ToolChoice(mode=ToolMode.NONE)).prompt)
    assert bench.allows(hidden, f'{head}{{"a": 1}}')


@pytest.mark.parametrize("family", THINKING, ids=lambda family: family.name)
def test_a_format_begins_after_the_reasoning(bench_of: MakeBench, family: Family) -> None:
    bench = bench_of(family)
    opens, closes = family.thinking or ("", "")
    request = asked(output_format=Regex("yes/no"))
    assert bench.allows(request, f"{opens}hm, 1/2{closes}\n\nyes/no")
    assert bench.allows(request, "yes/no")
    assert not bench.allows(request, f"{opens}hm{closes}no")
    assert bench.allows(request, f"hm{closes}yes/no", is_reasoning=True)
    assert not bench.allows(request, "yes/no", is_reasoning=True)
    unthinking = replace(request, reasoning=ReasoningWish(mode=ReasoningMode.OFF))
    assert not bench.allows(unthinking, f"{opens}hm{closes}yes/no")


def test_channels_reason_before_they_answer(bench_of: MakeBench) -> None:
    bench = bench_of(HARMONY)
    request = asked(output_format=JsonObject())
    thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
    assert bench.allows(request, f"{thought}{final(HARMONY)}{{}}")
    assert bench.allows(request, f"{final(HARMONY)}{{}}")
    assert not bench.allows(request, "{}")


def test_a_callers_grammar_keeps_its_meaning_among_other_rules(bench_of: MakeBench) -> None:
    bench = bench_of(HERMES)
    source = 'start: "start" restart // start\nrestart: ("!" | start) /start\\/\\n?/'
    request = asked((TIME,), output_format=Grammar(source))
    assert bench.allows(request, "start!start/")
    assert bench.allows(request, "<think>\nstart</think>startstart!start/\nstart/")
    assert not bench.allows(request, "start__!start/")


@pytest.mark.parametrize(
    ("wanted", "kind", "source"),
    [
        (JsonObject(), ConstraintKind.JSON_SCHEMA, '{"type": "object"}'),
        (JsonSchema({"enum": ["ü", 1]}), ConstraintKind.JSON_SCHEMA, '{"enum": ["ü", 1]}'),
        (Regex("a+"), ConstraintKind.REGEX, "a+"),
        (Grammar('start: "a"'), ConstraintKind.GRAMMAR, 'start: "a"'),
    ],
)
def test_a_format_by_itself_goes_on_as_it_is(
    bench_of: MakeBench, wanted: OutputFormat, kind: ConstraintKind, source: str
) -> None:
    assert bench_of(PLAIN).constraint(asked(output_format=wanted)) == Constraint(kind, source)


def test_a_model_without_calls_cannot_be_made_to_call(bench_of: MakeBench) -> None:
    with pytest.raises(Unsupported) as refusal:
        bench_of(PLAIN).constraint(asked((TIME,), REQUIRED))
    assert refusal.value.field == "tool_choice"


def test_many_tools_stay_within_the_engines_limits(bench_of: MakeBench) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            f"argument_{at}": {"type": "string", "description": "What it is for. " * 4}
            for at in range(8)
        },
    }
    tools = tuple(Tool(f"tool_{at}", None, json.loads(json.dumps(schema))) for at in range(100))
    bench = bench_of(HERMES)
    request = asked(tools, REQUIRED)
    assert bench.allows(request, calls(HERMES, ("tool_99", '{"argument_7": "x"}')))
