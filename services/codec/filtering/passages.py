"""All that a caller says to the model, by messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from services.codec.conversation import Conversation, Part, Reasoning, Text, Tool, ToolCall, Turn
from services.codec.filtering.content_filter import Passage
from services.codec.request import RawPrompts, TextPrompt, TokenPrompt

Prompt = Conversation | RawPrompts
RawText = Callable[[TextPrompt | TokenPrompt], str]


def passages_of(prompt: Prompt, raw_text: RawText) -> list[Passage]:
    """In their order; what the template adds is not among them.

    Args:
        prompt: of a request.
        raw_text: tells what a prompt without a template says.
    """
    if isinstance(prompt, RawPrompts):
        return [Passage("prompt", (raw_text(raw),)) for raw in prompt.prompts]
    turns = [Passage(f"messages[{at}]", tuple(_said(turn))) for at, turn in enumerate(prompt.turns)]
    tools = [Passage(f"tools[{at}]", tuple(_tool(tool))) for at, tool in enumerate(prompt.tools)]
    own = tuple(_strings(prompt.rendering.template_kwargs))
    return [*turns, *tools, *([Passage("chat_template_kwargs", own)] if own else [])]


def _said(turn: Turn) -> Iterator[str]:
    if turn.name is not None:
        yield turn.name
    for part in turn.parts:
        yield from _texts(part)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text() | Reasoning():
            yield part.text
        case ToolCall():
            yield part.name
            yield from _arguments(part.arguments)
        case _:
            yield from (text.text for text in part.parts)


def _tool(tool: Tool) -> Iterator[str]:
    yield tool.name
    if tool.description is not None:
        yield tool.description
    yield from _strings(tool.schema)


def _arguments(text: str) -> Iterator[str]:
    """What JSON says, or else the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield text
    else:
        yield from _strings(value)


def _strings(value: Any) -> Iterator[str]:
    """Keys and values of JSON, however deep they are."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*item.values(), *item]
        elif isinstance(item, list | tuple):
            waiting += item[::-1]
