"""The messages of Chat Completions as turns."""

from __future__ import annotations

import json

from services.codec.conversation import Part, Reasoning, Role, Text, ToolCall, ToolResult, Turn
from services.codec.protocols.fields import (
    Fields,
    Value,
    choice,
    fields,
    filled_text,
    free_object,
    items,
    list_of,
    text,
)
from services.codec.protocols.tool_definitions import tool_name
from services.shared.errors import MissingField, Unsupported

_ROLES = choice(
    {
        "system": Role.SYSTEM,
        "developer": Role.SYSTEM,
        "user": Role.USER,
        "assistant": Role.ASSISTANT,
        "tool": Role.TOOL,
        "function": Role.TOOL,
    }
)
_KINDS = choice(
    {kind: kind for kind in ("text", "refusal", "image_url", "input_audio", "file", "video_url")}
)
_REASONING = ("reasoning", "reasoning_content", "thinking")


def turn_of(value: Value) -> Turn:
    message = fields(value)
    role = message.required("role", _ROLES)
    name = message.optional("name", text)
    match role:
        case Role.ASSISTANT:
            return Turn(role, _assistant_parts(message), name)
        case Role.TOOL:
            call_id = message.optional("tool_call_id", text) or name or ""
            return Turn(role, (ToolResult(call_id, _content(message)),), name)
        case _:
            if not message.has("content"):
                path = message.path_of("content")
                raise MissingField(f"{path} must be set", field=path)
            return Turn(role, _content(message), name)


def _assistant_parts(message: Fields) -> tuple[Part, ...]:
    refusal = message.optional("refusal", text)
    calls = message.optional("tool_calls", list_of(_tool_call)) or []
    if message.has("function_call"):
        calls.append(_function_call(message.required("function_call", fields), ""))
    return (
        *_thoughts(message),
        *_content(message),
        *([Text(refusal)] if refusal else []),
        *calls,
    )


def _thoughts(message: Fields) -> tuple[Reasoning, ...]:
    """Reasoning under the names that servers give it, of which the first that is there counts."""
    for name in _REASONING:
        if message.has(name):
            thought = message.required(name, text)
            return (Reasoning(thought),) if thought else ()
    details = [fields(value) for value in message.optional("reasoning_details", items) or []]
    texts = [detail.optional("text", text) for detail in details]
    return tuple(Reasoning(thought) for thought in texts if thought)


def _content(message: Fields) -> tuple[Text, ...]:
    return message.optional("content", _text_parts) or ()


def _text_parts(value: Value) -> tuple[Text, ...]:
    """A string is one part."""
    if isinstance(value.json, list):
        return tuple(_text_part(item) for item in items(value))
    if not isinstance(value.json, str):
        raise value.wrong_type("a string or an array of parts")
    return (Text(text(value)),)


def _text_part(value: Value) -> Text:
    part = fields(value)
    kind = part.required("type", _KINDS)
    if kind not in {"text", "refusal"}:
        path = part.path_of("type")
        raise Unsupported(f"{path} must be text for this model, got {kind}", field=path)
    return Text(part.required(kind, text))


def _tool_call(value: Value) -> ToolCall:
    call = fields(value)
    call_id = call.optional("id", text) or ""
    if call.has("custom"):
        custom = fields(call.value("custom"))
        arguments = json.dumps({"input": custom.required("input", text)}, ensure_ascii=False)
        return ToolCall(call_id, custom.required("name", tool_name), arguments)
    return _function_call(call.required("function", fields), call_id)


def _function_call(function: Fields, call_id: str) -> ToolCall:
    arguments = function.optional("arguments", _arguments) or "{}"
    name = function.required("name", tool_name)
    return ToolCall(call_id or name, name, arguments)


def _arguments(value: Value) -> str:
    """JSON text; clients also send the object itself."""
    if isinstance(value.json, dict):
        return json.dumps(free_object(value), ensure_ascii=False)
    return filled_text(value) if value.json != "" else "{}"
