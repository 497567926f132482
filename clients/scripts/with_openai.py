"""The OpenAI SDK: Chat Completions and Responses."""

from __future__ import annotations

import json
from typing import Any

from openai import OpenAI
from question import (
    ABOUT,
    LIMITS,
    MAX_TOKENS,
    MESSAGES,
    MODEL,
    PROMPT,
    SCHEMA,
    SECRET,
    look_up,
    say,
)

TOOL: Any = {
    "type": "function",
    "function": {"name": "look_up", "description": ABOUT, "parameters": SCHEMA},
}


def ask(client: OpenAI) -> None:
    chat: Any = client.chat.completions
    wanted: dict[str, Any] = {"model": MODEL, "messages": MESSAGES, **LIMITS}
    whole = chat.create(**wanted)
    say(whole.choices[0].message.content)
    chunks = chat.create(**wanted, stream=True)
    say("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
    asked: dict[str, Any] = {
        "model": MODEL,
        "input": PROMPT,
        "max_output_tokens": MAX_TOKENS,
        "temperature": 0,
    }
    say(client.responses.create(**asked).output_text)
    with client.responses.stream(**asked) as stream:
        say(stream.get_final_response().output_text)


def call(client: OpenAI) -> None:
    chat: Any = client.chat.completions
    first = chat.create(model=MODEL, messages=MESSAGES, tools=[TOOL]).choices[0].message
    (called,) = first.tool_calls
    told = look_up(**json.loads(called.function.arguments))
    result = {"role": "tool", "tool_call_id": called.id, "content": told}
    last = chat.create(model=MODEL, messages=[*MESSAGES, first, result], tools=[TOOL])
    say(last.choices[0].message.content)


(call if SECRET else ask)(OpenAI())
