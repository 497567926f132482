"""Items of an output, whole or just begun."""

from __future__ import annotations

from typing import Any

from services.codec.conversation import Tool, ToolKind
from services.codec.protocols.chat_completions.reply import custom_input
from services.codec.protocols.chat_completions.tokens import logprob_entries
from services.codec.protocols.outputs import Called, Item, Said, Thought, object_text
from services.codec.protocols.reply import Reply, call_name
from services.codec.protocols.responses.request import INCLUDE, SEALED

IN_PROGRESS = "in_progress"


def item_id(reply: Reply, at: int, item: Item) -> str:
    prefix = {Said: "msg", Thought: "rs"}.get(type(item), "fc")
    return f"{prefix}_{reply.reply_id}{at:04x}"


def item_object(reply: Reply, at: int, item: Item, status: str) -> dict[str, Any]:
    """An item as it is when its status is `status`; what has just begun is empty."""
    head = {"id": item_id(reply, at, item), "status": status}
    begins = status == IN_PROGRESS
    match item:
        case Said():
            content = [] if begins else [text_part(item)]
            return {**head, "type": "message", "role": "assistant", "content": content}
        case Thought():
            return {**head, **_reasoning(reply, item, begins=begins)}
        case Called():
            return {**head, **_call(reply, item, begins=begins)}


def text_part(said: Said) -> dict[str, Any]:
    return {
        "type": "output_text",
        "text": said.text,
        "annotations": [],
        "logprobs": logprob_entries(said.tokens),
    }


def tool_of(reply: Reply, call: Called) -> Tool | None:
    return next((tool for tool in reply.request.tools if tool.name == call.name), None)


def is_custom(reply: Reply, call: Called) -> bool:
    tool = tool_of(reply, call)
    return tool is not None and tool.kind is ToolKind.CUSTOM


def _reasoning(reply: Reply, thought: Thought, *, begins: bool) -> dict[str, Any]:
    content = [] if begins else [{"type": "reasoning_text", "text": thought.text}]
    item: dict[str, Any] = {"type": "reasoning", "summary": [], "content": content}
    if SEALED in reply.request.echo.get(INCLUDE, ()):
        item["encrypted_content"] = "" if begins else reply.seal.closed(thought.text)
    return item


def _call(reply: Reply, call: Called, *, begins: bool) -> dict[str, Any]:
    """Under the name that the caller gave the tool."""
    tool = tool_of(reply, call)
    named: dict[str, Any] = {"call_id": call_name("call_", call.call_id), "name": call.name}
    if tool is not None and tool.namespace is not None:
        name = tool.name.removeprefix(f"{tool.namespace}__")
        named |= {"name": name, "namespace": tool.namespace}
    if is_custom(reply, call):
        text = "" if begins else custom_input(object_text(call))
        return {"type": "custom_tool_call", **named, "input": text}
    return {"type": "function_call", **named, "arguments": "" if begins else object_text(call)}
