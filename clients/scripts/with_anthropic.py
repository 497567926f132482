"""The Anthropic SDK."""

from __future__ import annotations

from typing import Any

from anthropic import Anthropic
from question import ABOUT, MAX_TOKENS, MESSAGES, MODEL, SCHEMA, SECRET, look_up, say

TOOL: Any = {"name": "look_up", "description": ABOUT, "input_schema": SCHEMA}


def ask(client: Anthropic) -> None:
    asked: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, "max_tokens": MAX_TOKENS}
    asked["extra_body"] = {"temperature": 0}  # the SDK has no name for it any more
    whole: Any = client.messages.create(**asked)
    say(whole.content[0].text)
    with client.messages.stream(**asked) as stream:
        say("".join(stream.text_stream))
    counted = client.messages.count_tokens(model=MODEL, messages=asked["messages"])
    used = whole.usage.input_tokens + whole.usage.cache_read_input_tokens
    if counted.input_tokens != used:
        raise SystemExit(f"counted {counted.input_tokens}, used {used}")


def call(client: Anthropic) -> None:
    asked: dict[str, Any] = {"model": MODEL, "tools": [TOOL], "max_tokens": 32_000}
    with client.messages.stream(messages=MESSAGES, **asked) as stream:
        first: Any = stream.get_final_message()
    (called,) = (block for block in first.content if block.type == "tool_use")
    told = {"type": "tool_result", "tool_use_id": called.id, "content": look_up(**called.input)}
    turns = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [told]}]
    with client.messages.stream(messages=[*MESSAGES, *turns], **asked) as stream:
        say("".join(stream.text_stream))


(call if SECRET else ask)(Anthropic())
