"""LiteLLM as a library; the argument names the provider."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from litellm import completion
from question import ABOUT, LIMITS, MESSAGES, MODEL, SCHEMA, SECRET, look_up, say

TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": ABOUT, "parameters": SCHEMA},
}
PROVIDER = sys.argv[1]
BASE = os.environ["URL"] + ("/v1" if PROVIDER == "openai" else "")


def create(messages: list[Any], **options: Any) -> Any:
    return completion(
        model=f"{PROVIDER}/{MODEL}",
        messages=messages,
        api_base=BASE,
        api_key="unused",
        num_retries=0,
        **options,
    )


def ask() -> None:
    say(create(MESSAGES, **LIMITS).choices[0].message.content)
    chunks = create(MESSAGES, **LIMITS, stream=True)
    say("".join(chunk.choices[0].delta.content or "" for chunk in chunks))


def call() -> None:
    """Without a limit: its own is beyond what small models have."""
    first = create(MESSAGES, tools=[TOOL]).choices[0].message
    (called,) = first.tool_calls
    told = look_up(**json.loads(called.function.arguments))
    result = {"role": "tool", "tool_call_id": called.id, "content": told}
    say(create([*MESSAGES, first, result], tools=[TOOL]).choices[0].message.content)


(call if SECRET else ask)()
