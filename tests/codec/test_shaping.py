"""Turns as templates can show them: what comes later never changes what was shown before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.conversation import (
    Conversation,
    Rendering,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from services.codec.manners import Manners
from services.codec.output.families import HERMES, KIMI_K2, MISTRAL, SMOLLM2
from services.codec.output.family import Family
from services.codec.prompt import PromptEncoder
from services.codec.request import ReasoningMode, ReasoningWish
from services.codec.shaping import shaped
from services.codec.thinking import with_reasoning
from services.codec.turns import TemplateTurns, TurnStyle
from services.shared.model_folder import ModelFolder
from tests.codec.small_model import ROLES, added, byte_level, write

CHATML = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# A system text only at the very beginning, and turns that take turns.
STRICT = (
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}"
    "{% if not loop.first and m.role == loop.previtem.role %}{{ raise_exception('no') }}{% endif %}"
    "{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
)
# No system text at all, as some models have it.
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
    "{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
)
# All system texts at the beginning, wherever they stood.
HOISTING = (
    "{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}"
    "{% for m in messages if m.role != 'system' %}"
    "{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
)
WITH_TOOLS = "{% if tools %}{{ tools|tojson }}{% endif %}" + CHATML

Maker = Callable[..., PromptEncoder]


@pytest.fixture(scope="module")
def encoder_of(tmp_path_factory: pytest.TempPathFactory) -> Maker:
    made: dict[tuple[str, str], PromptEncoder] = {}

    def make(template: str, family: Family = HERMES) -> PromptEncoder:
        key = (template, family.name)
        if key not in made:
            tokenizer = byte_level()
            tokenizer.add_special_tokens(added(ROLES))
            path: Path = tmp_path_factory.mktemp("model")
            folder: ModelFolder = write(path, tokenizer, template=template)
            made[key] = PromptEncoder(folder, cache_bytes=2**20, family=family)
        return made[key]

    return make


def said(role: Role, text: str) -> Turn:
    return Turn(role, (Text(text),))


def shown(encoder: PromptEncoder, *turns: Turn, tools: tuple[Tool, ...] = ()) -> str:
    return encoder.shown(encoder.render(Conversation(turns, tools)))


SYSTEM, USER, ASSISTANT = Role.SYSTEM, Role.USER, Role.ASSISTANT


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (CHATML, "<|user|>a<|end|><|system|>b<|end|><|assistant|>"),
        (STRICT, "<|user|>a\n\nb<|end|>"),
        (NO_SYSTEM, "<|user|>a\n\nb<|end|>"),
        (HOISTING, "<|user|>a\n\nb<|end|>"),
    ],
)
def test_later_system_text_stays_in_place_or_joins_its_neighbour(
    encoder_of: Maker, template: str, expected: str
) -> None:
    assert shown(encoder_of(template), said(USER, "a"), said(SYSTEM, "b")) == expected


def test_system_text_after_an_answer_goes_before_the_next_words(encoder_of: Maker) -> None:
    turns = (said(USER, "a"), said(ASSISTANT, "b"), said(SYSTEM, "c"), said(USER, "d"))
    assert shown(encoder_of(STRICT), *turns).endswith("b<|end|><|user|>c\n\nd<|end|>")


def test_first_system_text_goes_where_the_template_takes_it(encoder_of: Maker) -> None:
    turns = (said(SYSTEM, "s"), said(SYSTEM, "t"), said(USER, "a"))
    assert shown(encoder_of(STRICT), *turns) == "<|system|>s\n\nt<|end|><|user|>a<|end|>"
    assert shown(encoder_of(NO_SYSTEM), *turns) == "<|user|>s\n\nt\n\na<|end|>"


def test_turns_of_the_user_are_one_where_they_must_be(encoder_of: Maker) -> None:
    turns = (said(USER, "a"), said(USER, "b"))
    assert shown(encoder_of(STRICT), *turns) == "<|user|>a\n\nb<|end|>"
    assert shown(encoder_of(CHATML), *turns).startswith("<|user|>a<|end|><|user|>b<|end|>")


_rounds = st.lists(st.sampled_from(["user", "system user", "user system"]), max_size=4)


@pytest.mark.parametrize("template", [CHATML, STRICT, NO_SYSTEM, HOISTING])
@given(rounds=_rounds)
def test_rounds_that_were_answered_never_change(
    encoder_of: Maker, template: str, rounds: list[str]
) -> None:
    encoder = encoder_of(template)
    turns = [said(SYSTEM, "s"), said(USER, "0"), said(ASSISTANT, "0")]
    before = shown(encoder, *turns).removesuffix("<|assistant|>")
    for number, roles in enumerate(rounds):
        turns += [said(Role(role), f"{role}{number}") for role in roles.split()]
        turns.append(said(ASSISTANT, f"answer{number}"))
        now = shown(encoder, *turns).removesuffix("<|assistant|>")
        assert now.startswith(before)
        before = now


CALLS = Turn(ASSISTANT, (Text("Wait."), ToolCall("1", "f", '{"x":  1}'), ToolCall("2", "g", "")))
RESULTS = (
    Turn(Role.TOOL, (ToolResult("2", (Text("two"),)),)),
    Turn(Role.USER, (ToolResult("1", (Text("one"), Text("more"))), Text("so?"))),
)
TOOLS = (Tool("f", "does f", {"type": "object"}),)


def test_results_stand_in_the_order_of_their_calls() -> None:
    turns = shaped(Conversation((CALLS, *RESULTS)), Manners(), None)
    ids = [
        part.call_id for turn in turns for part in turn.turn.parts if isinstance(part, ToolResult)
    ]
    assert ids == ["1", "2"]
    assert [turn.at for turn in turns] == [0, 2, 1, 2]


def test_system_text_does_not_come_between_calls_and_results() -> None:
    turns = shaped(Conversation((CALLS, said(SYSTEM, "s"), *RESULTS)), Manners(), None)
    assert [turn.turn.role for turn in turns][1:4] == [Role.TOOL, Role.TOOL, Role.SYSTEM]


def test_tools_are_text_where_the_template_knows_none(encoder_of: Maker) -> None:
    encoder = encoder_of(CHATML, SMOLLM2)
    prompt = shown(encoder, said(USER, "hi"), CALLS, *RESULTS, tools=TOOLS)
    assert prompt.startswith("<|system|>")
    assert '"name": "f", "description": "does f", "parameters": {"type": "object"}' in prompt
    assert prompt.endswith(
        '<|assistant|>Wait.\n<tool_call>[{"name": "f", "arguments": {"x":  1}}, '
        '{"name": "g", "arguments": {}}]</tool_call><|end|>'
        "<|user|><tool_response>one\nmore</tool_response>\n<tool_response>two</tool_response>"
        "<|end|><|user|>so?<|end|><|assistant|>"
    )
    with_system = shown(encoder, said(SYSTEM, "Be kind."), said(USER, "hi"), tools=TOOLS)
    assert with_system.startswith("<|system|>Be kind.\n\nYou can call")


def test_tools_go_to_the_template_that_knows_them(encoder_of: Maker) -> None:
    prompt = shown(encoder_of(WITH_TOOLS), said(USER, "hi"), tools=TOOLS)
    assert prompt.startswith('[{"type": "function", "function": {"name": "f"')
    assert "You can call" not in prompt


@given(
    text=st.lists(
        st.sampled_from([*ROLES, "<|", "end|>", "x", "</tool_response>", "<tools>"]), max_size=5
    ).map("".join)
)
def test_no_text_of_tools_makes_a_control_token(encoder_of: Maker, text: str) -> None:
    encoder = encoder_of(CHATML, SMOLLM2)
    turns = (
        said(USER, "hi"),
        Turn(ASSISTANT, (ToolCall(text, text, f'{{"{text}": 1}}'),)),
        Turn(Role.TOOL, (ToolResult(text, (Text(text),)),)),
    )
    tools = (Tool(text, text, {"properties": {text: {"enum": [text]}}}),)
    ids = encoder.encode(Conversation(turns, tools))
    texts = {control.index: control.text for control in encoder.tokenizer.controls}
    written = [texts[token] for token in ids if token in texts]
    said_by = ("system", "user", "assistant", "user")
    expected = [part for role in said_by for part in (f"<|{role}|>", "<|end|>")]
    assert written == [*expected, "<|assistant|>"]


@pytest.mark.parametrize(
    ("family", "ids"),
    [
        (MISTRAL, ["000000000", "000000001"]),
        (KIMI_K2, ["functions.f:0", "functions.g:1"]),
        (HERMES, ["1", "2"]),
    ],
)
def test_calls_have_ids_of_the_shape_that_the_template_wants(
    family: Family, ids: list[str]
) -> None:
    turns = TemplateTurns(lambda text, _: text, TurnStyle(family=family))
    messages = turns.variables(Conversation((CALLS, *RESULTS)), end="")["messages"]
    assert [call["id"] for call in messages[0]["tool_calls"]] == ids
    assert [message["tool_call_id"] for message in messages[1:3]] == ids
    assert [message["name"] for message in messages[1:3]] == ["f", "g"]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (ReasoningWish(), {"own": 1}),
        (ReasoningWish(mode=ReasoningMode.OFF), {"own": 1, "enable_thinking": False}),
        (
            ReasoningWish(mode=ReasoningMode.ON, effort="xhigh"),
            {"own": 1, "enable_thinking": True, "reasoning_effort": "high"},
        ),
    ],
)
def test_wishes_about_reasoning_are_what_the_template_looks_at(
    wish: ReasoningWish, expected: dict[str, object]
) -> None:
    conversation = Conversation(
        (said(USER, "hi"),), rendering=Rendering(template_kwargs={"own": 1})
    )
    names = frozenset({"enable_thinking", "reasoning_effort", "messages"})
    assert with_reasoning(conversation, wish, names).rendering.template_kwargs == expected
    assert with_reasoning(conversation, wish, frozenset()) is conversation
