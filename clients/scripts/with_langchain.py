"""LangChain; the argument names the provider."""

from __future__ import annotations

import sys
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from question import LIMITS, MODEL, PROMPT, SECRET, look_up, say

MODELS: dict[str, Any] = {"openai": ChatOpenAI, "anthropic": ChatAnthropic}


def text_of(message: Any) -> str:
    content = message.content
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def ask(make: Any) -> None:
    model = make(model=MODEL, **LIMITS)
    say(text_of(model.invoke(PROMPT)))
    say("".join(text_of(chunk) for chunk in model.stream(PROMPT)))


def call(make: Any) -> None:
    tools = [tool(look_up)]
    model = make(model=MODEL).bind_tools(tools)
    turns: list[Any] = [HumanMessage(PROMPT)]
    turns.append(model.invoke(turns))
    (called,) = turns[-1].tool_calls
    turns.append(ToolMessage(look_up(**called["args"]), tool_call_id=called["id"]))
    say(text_of(model.invoke(turns)))


(call if SECRET else ask)(MODELS[sys.argv[1]])
