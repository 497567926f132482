from __future__ import annotations

from typing import Any

import pytest

from services.codec.conversation import (
    Conversation,
    Part,
    Reasoning,
    Rendering,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Turn,
)
from services.codec.turns import TemplateTurns, TurnStyle, check_text
from services.shared.errors import InvalidRequest


def checked(text: str, field: str) -> str:
    check_text(text, field)
    return text


def messages(*turns: Turn, as_parts: bool = False, end: str = "") -> Any:
    maker = TemplateTurns(checked, TurnStyle(as_parts=as_parts))
    return maker.variables(Conversation(turns), end=end)["messages"]


def turn(role: Role, *parts: Part) -> Turn:
    return Turn(role, parts)


def test_text_parts_are_joined_with_a_newline() -> None:
    assert messages(turn(Role.USER, Text("a"), Text("b"))) == [{"role": "user", "content": "a\nb"}]


def test_turn_without_text_has_empty_content() -> None:
    assert messages(turn(Role.ASSISTANT)) == [{"role": "assistant", "content": ""}]


def test_text_becomes_a_part_where_the_template_wants_parts() -> None:
    made = messages(turn(Role.USER, Text("a")), as_parts=True, end="!")
    assert made[0]["content"] == [{"type": "text", "text": "a!"}]


def test_calls_and_results_take_the_shape_of_the_chat_protocol() -> None:
    made = messages(
        turn(Role.ASSISTANT, Reasoning("hm"), ToolCall("c1", "look", '{"b": 1, "a": "x"}')),
        turn(Role.USER, ToolResult("c1", (Text("found"),)), Text("and?")),
    )
    function = {"name": "look", "arguments": {"b": 1, "a": "x"}}
    assert made == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found", "name": "look"},
        {"role": "user", "content": "and?"},
    ]
    assert list(made[0]["tool_calls"][0]["function"]["arguments"]) == ["b", "a"]


@pytest.mark.parametrize("arguments", ["{broken", "[1]", '{"a": NaN}', "[" * 100_000, '"x"'])
def test_arguments_that_are_no_object_stay_text(arguments: str) -> None:
    made = messages(turn(Role.ASSISTANT, ToolCall("c", "f", arguments)))
    assert made[0]["tool_calls"][0]["function"]["arguments"] == arguments


@pytest.mark.parametrize(("text", "what"), [("a\ud800", r"U\+D800"), ("é\0", "NUL"), ("\0", "NUL")])
def test_text_that_cannot_be_encoded_is_refused_by_field(text: str, what: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"messages\[1\]\.content must not .*{what}") as error:
        messages(turn(Role.USER, Text("a")), turn(Role.USER, Text(text)))
    assert error.value.field == "messages[1].content"


def variables(tool: Tool | None = None, **kwargs: Any) -> dict[str, Any]:
    conversation = Conversation(
        (turn(Role.USER, Text("a")),),
        tools=(tool,) if tool else (),
        rendering=Rendering(template_kwargs=kwargs),
    )
    return TemplateTurns(checked, TurnStyle()).variables(conversation, end="")


@pytest.mark.parametrize("name", ["messages", "tools", "add_generation_prompt", "bos_token"])
def test_reserved_variables_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"chat_template_kwargs.{name} must not be set"):
        variables(None, **{name: 1})


@pytest.mark.parametrize("name", ["a-b", "_x", "", "a b"])
def test_variables_have_plain_names(name: str) -> None:
    with pytest.raises(InvalidRequest, match="names of letters"):
        variables(None, **{name: 1})


def test_other_variables_reach_the_template() -> None:
    assert variables(enable_thinking=False)["enable_thinking"] is False


def test_deep_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"a": schema}
    with pytest.raises(InvalidRequest, match=r"tools\[0\]\.parameters must nest at most 64"):
        variables(Tool("f", None, schema))
