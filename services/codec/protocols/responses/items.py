"""Items of an input as turns. What one side said without a break is one turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from services.codec.conversation import Part, Reasoning, Role, Text, ToolCall, ToolResult, Turn
from services.codec.protocols.fields import (
    Fields,
    Value,
    choice,
    fields,
    items,
    list_of,
    text,
)
from services.codec.protocols.responses.tools import full_name
from services.codec.protocols.seal import Seal
from services.codec.protocols.tool_definitions import tool_name
from services.codec.protocols.tool_results import in_call_order
from services.shared.errors import Unsupported

_ROLES = choice(
    {
        "system": Role.SYSTEM,
        "developer": Role.SYSTEM,
        "user": Role.USER,
        "assistant": Role.ASSISTANT,
    }
)
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
_UNREAD = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot"})


@dataclass(slots=True)
class Input:
    """What the items say, one after the other.

    Args:
        seal: opens reasoning that the caller kept.
        turns: so far.
        tools: definitions of tools among the items.
    """

    seal: Seal
    turns: list[Turn] = field(default_factory=list)
    tools: list[Value] = field(default_factory=list)

    def take(self, value: Value) -> None:
        """Items of tools that run elsewhere are history without a meaning here, and are dropped."""
        item = fields(value)
        kind = item.optional("type", text) or "message"
        if kind == "item_reference":
            path = item.path_of("type")
            raise Unsupported(f"{path} must not be item_reference: no item is kept", field=path)
        if kind in _READERS:
            _READERS[kind](self, item)

    def ordered(self) -> tuple[Turn, ...]:
        return in_call_order(self.turns)

    def message(self, item: Fields) -> None:
        role = item.required("role", _ROLES)
        parts = item.required("content", texts_of)
        if role is Role.ASSISTANT:
            self._say(*parts)
        else:
            self.turns.append(Turn(role, parts))

    def reasoning(self, item: Fields) -> None:
        """The sealed text counts; a blob of another server says nothing."""
        blob = item.optional("encrypted_content", text)
        opened = None if blob is None else self.seal.opened(blob)
        contents = item.optional("content", list_of(_reasoning_text)) or []
        thought = opened or "".join(contents)
        if thought:
            self._say(Reasoning(thought))

    def function_call(self, item: Fields) -> None:
        arguments = item.optional("arguments", text) or "{}"
        self._say(ToolCall(item.required("call_id", text), full_name(item), arguments))

    def custom_call(self, item: Fields) -> None:
        arguments = json.dumps({"input": item.required("input", text)}, ensure_ascii=False)
        name = item.required("name", tool_name)
        self._say(ToolCall(item.required("call_id", text), name, arguments))

    def result(self, item: Fields) -> None:
        output = item.optional("output", texts_of) or ()
        result = ToolResult(item.required("call_id", text), output)
        self.turns.append(Turn(Role.TOOL, (result,)))

    def additional_tools(self, item: Fields) -> None:
        self.tools += item.optional("tools", items) or []

    def _say(self, *parts: Part) -> None:
        if self.turns and self.turns[-1].role is Role.ASSISTANT:
            parts = (*self.turns.pop().parts, *parts)
        self.turns.append(Turn(Role.ASSISTANT, parts))


def texts_of(value: Value) -> tuple[Text, ...]:
    """A string is one part."""
    if isinstance(value.json, list):
        return tuple(_text_part(item) for item in items(value))
    if not isinstance(value.json, str):
        raise value.wrong_type("a string or an array of parts")
    return (Text(text(value)),)


def _text_part(value: Value) -> Text:
    part = fields(value)
    kind = part.required("type", text)
    if kind in _TEXTS:
        return Text(part.required(_TEXTS[kind], text))
    path = part.path_of("type")
    if kind in _UNREAD:
        raise Unsupported(f"{path} must not be {kind}: the model reads text", field=path)
    raise part.value("type").invalid(f"one of {', '.join(_TEXTS)}")


def _reasoning_text(value: Value) -> str:
    return fields(value).optional("text", text) or ""


_READERS: dict[str, Callable[[Input, Fields], None]] = {
    "message": Input.message,
    "reasoning": Input.reasoning,
    "function_call": Input.function_call,
    "function_call_output": Input.result,
    "custom_tool_call": Input.custom_call,
    "custom_tool_call_output": Input.result,
    "additional_tools": Input.additional_tools,
}
