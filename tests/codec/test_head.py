"""What a prompt's head is: what stays the same whatever is said after system prompt and tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.conversation import Conversation, Role, Text, Tool, ToolCall, Turn
from services.codec.head import head_pieces
from services.codec.prompt import PromptEncoder
from services.shared.model_folder import ModelFolder

SYSTEM = "You are a clerk of few words. " * 10
SAID = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60)


@pytest.fixture(scope="module")
def encoder(model_folder: ModelFolder) -> PromptEncoder:
    return PromptEncoder(model_folder, cache_bytes=2**26)


def chat(*pairs: tuple[Role, str], tools: tuple[Tool, ...] = ()) -> Conversation:
    return Conversation(tuple(Turn(role, (Text(text),)) for role, text in pairs), tools=tools)


def test_the_head_is_the_system_prompt_and_what_begins_the_next_turn(
    encoder: PromptEncoder,
) -> None:
    prompt = encoder.encode_with_head(chat((Role.SYSTEM, SYSTEM), (Role.USER, "What is a tare?")))
    text = b"".join(map(encoder.tokenizer.token_bytes, prompt.ids[: prompt.head_tokens])).decode()
    assert text == f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>"
    assert prompt.ids == encoder.encode(chat((Role.SYSTEM, SYSTEM), (Role.USER, "What is a tare?")))


def test_tools_belong_to_the_head(encoder: PromptEncoder) -> None:
    tool = Tool("weigh", "Weighs things.", {"type": "object"})
    question = (Role.USER, "How heavy is a feather?")
    with_tool = encoder.encode_with_head(chat((Role.SYSTEM, SYSTEM), question, tools=(tool,)))
    without = encoder.encode_with_head(chat((Role.SYSTEM, SYSTEM), question))
    assert with_tool.head_tokens >= without.head_tokens > 0


def test_without_system_prompt_and_tools_there_is_no_head(encoder: PromptEncoder) -> None:
    assert encoder.encode_with_head(chat((Role.USER, "What is a tare?"))).head_tokens == 0


@given(first=SAID, second=SAID)
def test_what_is_said_changes_no_token_of_the_head(
    encoder: PromptEncoder, first: str, second: str
) -> None:
    one = encoder.encode_with_head(chat((Role.SYSTEM, SYSTEM), (Role.USER, first)))
    other = encoder.encode_with_head(chat((Role.SYSTEM, SYSTEM), (Role.USER, second)))
    size = min(one.head_tokens, other.head_tokens)
    assert one.ids[:size] == other.ids[:size]


def test_more_turns_change_nothing(encoder: PromptEncoder) -> None:
    short = [(Role.SYSTEM, SYSTEM), (Role.USER, "What is a tare?")]
    long = [*short, (Role.ASSISTANT, "A weight."), (Role.USER, "And a gross?")]
    one, other = (encoder.encode_with_head(chat(*turns)) for turns in (short, long))
    assert one.head_tokens == other.head_tokens > 50


def test_text_that_looks_like_what_is_said_makes_the_head_shorter() -> None:
    asked = chat((Role.SYSTEM, "Say hello."), (Role.USER, "hello"))
    assert head_pieces(asked, ["", "system\nSay hello.", "\n", "user\nhello"]) == 1
    assert head_pieces(asked, ["", "system\nSay it.", "\n", "user\nhello"]) == 3


@pytest.mark.parametrize(
    "turns",
    [
        (),
        (Turn(Role.SYSTEM, (Text("s"),)),),
        (Turn(Role.SYSTEM, (Text("s"),)), Turn(Role.USER, ())),
        (Turn(Role.SYSTEM, (Text("s"),)), Turn(Role.USER, (Text(" "),))),
        (Turn(Role.SYSTEM, (Text("s"),)), Turn(Role.ASSISTANT, (ToolCall("1", "f", "{}"),))),
        (Turn(Role.SYSTEM, (Text("s"),)), Turn(Role.USER, (Text("not shown"),))),
    ],
)
def test_where_nothing_is_certain_there_is_no_head(turns: tuple[Turn, ...]) -> None:
    assert head_pieces(Conversation(turns), ["", "system\ns", "\n", "user\n"]) == 0
