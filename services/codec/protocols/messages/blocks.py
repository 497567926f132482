"""Content blocks of Messages as parts of a turn."""

from __future__ import annotations

import json
from collections.abc import Callable

from services.codec.conversation import Part, Reasoning, Text, ToolCall, ToolResult
from services.codec.protocols.fields import (
    Fields,
    Value,
    choice,
    fields,
    free_object,
    items,
    list_of,
    text,
)
from services.codec.protocols.tool_definitions import tool_name
from services.shared.errors import Unsupported

_DROPPED = frozenset(
    {
        "redacted_thinking",
        "compaction",
        "fallback",
        "mcp_tool_use",
        "mcp_tool_result",
        "connector_text",
        "server_tool_use",
        "tool_reference",
        "browser_state",
    }
)
_UNREAD = frozenset({"image", "container_upload"})


def parts_of(value: Value) -> list[Part]:
    """A string is one text block; empty text says nothing and is dropped."""
    if isinstance(value.json, list):
        return [part for block in items(value) for part in _block_parts(block)]
    if not isinstance(value.json, str):
        raise value.wrong_type("a string or an array of blocks")
    string = text(value)
    return [Text(string)] if string else []


def texts_of(value: Value) -> tuple[Text, ...]:
    """Blocks of a tool result, of which only text can stand there."""
    return tuple(part for part in parts_of(value) if isinstance(part, Text))


def _block_parts(value: Value) -> list[Part]:
    """Blocks of tools that run elsewhere are history without a meaning here, and are dropped."""
    block = fields(value)
    kind = block.required("type", text)
    if kind in _READERS:
        return _READERS[kind](block)
    if kind in _DROPPED or kind.endswith("_tool_result"):
        return []
    path = block.path_of("type")
    if kind in _UNREAD:
        raise Unsupported(f"{path} must not be {kind}: the model reads text", field=path)
    raise block.value("type").invalid(f"one of {', '.join(_READERS)}")


def _text(block: Fields) -> list[Part]:
    string = block.required("text", text)
    return [Text(string)] if string else []


def _thinking(block: Fields) -> list[Part]:
    return [Reasoning(block.required("thinking", text), block.optional("signature", text))]


def _tool_call(block: Fields) -> list[Part]:
    arguments = block.optional("input", free_object) or {}
    call_id, name = block.required("id", text), block.required("name", tool_name)
    return [ToolCall(call_id, name, json.dumps(arguments, ensure_ascii=False))]


def _tool_result(block: Fields) -> list[Part]:
    call_id = block.required("tool_use_id", text)
    texts = block.optional("content", texts_of) or ()
    return [ToolResult(call_id, texts, is_error=block.flag("is_error"))]


def _document(block: Fields) -> list[Part]:
    source = block.required("source", fields)
    kind = source.required("type", text)
    if kind not in {"text", "content"}:
        path = source.path_of("type")
        raise Unsupported(f"{path} must be text or content for this model", field=path)
    if kind == "text":
        return _titled(block, (Text(source.required("data", text)),))
    return _titled(block, source.required("content", texts_of))


def _search_result(block: Fields) -> list[Part]:
    return _titled(block, block.required("content", texts_of))


def _titled(block: Fields, texts: tuple[Text, ...]) -> list[Part]:
    title = block.optional("title", text)
    return [Text(title), *texts] if title else [*texts]


def system_texts(value: Value) -> list[str]:
    """Text blocks of the system field, without the client's billing line, which never repeats."""
    if not isinstance(value.json, list):
        return [text(value)]
    return [
        string
        for string in list_of(_system_text)(value)
        if string and not string.startswith("x-anthropic-billing-header")
    ]


def _system_text(value: Value) -> str:
    block = fields(value)
    block.required("type", choice({"text": "text"}))
    return block.required("text", text)


_READERS: dict[str, Callable[[Fields], list[Part]]] = {
    "text": _text,
    "thinking": _thinking,
    "tool_use": _tool_call,
    "tool_result": _tool_result,
    "document": _document,
    "search_result": _search_result,
}
