"""A complete answer as Chat Completions has it, and what its stream shares with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from services.codec.conversation import Tool, ToolKind
from services.codec.events import EndReason, Finish, OutputEvent, Usage
from services.codec.protocols.chat_completions.tokens import logprobs_of
from services.codec.protocols.outputs import Called, Output, collected, has_calls
from services.codec.protocols.reply import Reply, call_name, json_bytes, told

_REASONS = {
    EndReason.END_OF_TEXT: "stop",
    EndReason.STOP_TOKEN: "stop",
    EndReason.STOP_STRING: "stop",
    EndReason.MAX_TOKENS: "length",
    EndReason.CONTEXT_FULL: "length",
    EndReason.TOOL_CALLS: "stop",
    EndReason.CONTENT_FILTER: "content_filter",
}

FUNCTION_CALL = "function_call"
"""Key of a reply's echo: the caller speaks of functions, as before there were tools."""


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    answer = collected(events)
    body = {
        **head(reply, "chat.completion"),
        "choices": [_choice(reply, at, output) for at, output in enumerate(answer.outputs)],
        "usage": usage_object(answer.usage),
        **told(answer.usage),
    }
    if answer.start.prompt_ids is not None:
        body["prompt_token_ids"] = list(answer.start.prompt_ids)
    return json_bytes(body)


def _choice(reply: Reply, index: int, output: Output) -> dict[str, Any]:
    delivery = reply.delivery
    choice = {
        "index": index,
        "message": _message(reply, output),
        "logprobs": None if delivery.top_logprobs is None else logprobs_of(output.text_tokens),
        **ending(reply, output.finish, len(output.calls)),
    }
    if delivery.token_ids:
        choice["token_ids"] = [token.token_id for token in output.tokens]
    return choice


def _message(reply: Reply, output: Output) -> dict[str, Any]:
    """Keys of what did not come are left out: agents ask whether they are there."""
    calls = output.calls
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if calls and not output.text else output.text,
        "refusal": None,
    }
    if output.reasoning and reply.request.reasoning.shown:
        message |= reasoning_fields(output.reasoning)
    if calls and FUNCTION_CALL in reply.request.echo:
        message["function_call"] = {"name": calls[0].name, "arguments": calls[0].arguments or "{}"}
    elif calls:
        message["tool_calls"] = [_call(reply, call) for call in calls]
    return message


def _call(reply: Reply, call: Called) -> dict[str, Any]:
    told = call_head(reply, call.call_id, call.name)
    if is_custom(reply.request.tools, call.name):
        return told | {"custom": {"name": call.name, "input": custom_input(call.arguments)}}
    return told | {"function": {"name": call.name, "arguments": call.arguments or "{}"}}


def call_head(reply: Reply, call_id: str, name: str) -> dict[str, Any]:
    kind = "custom" if is_custom(reply.request.tools, name) else "function"
    return {"id": call_name("call_", call_id), "type": kind}


def is_custom(tools: Sequence[Tool], name: str) -> bool:
    return any(tool.name == name and tool.kind is ToolKind.CUSTOM for tool in tools)


def custom_input(arguments: str) -> str:
    """The text that a custom tool takes; arguments of another form are passed on as they are."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = value.get("input") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments


def reasoning_fields(text: str) -> dict[str, Any]:
    """Under both names that clients read."""
    return {"reasoning": text, "reasoning_content": text}


def ending(reply: Reply, finish: Finish, calls: int) -> dict[str, Any]:
    reason = _REASONS[finish.reason]
    if has_calls(calls, finish):
        reason = "function_call" if FUNCTION_CALL in reply.request.echo else "tool_calls"
    return {"finish_reason": reason, "stop_reason": finish.stop}


def head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.reply_id}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    """Cached tokens count among those of the prompt; an end-of-text token counts as drawn."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
