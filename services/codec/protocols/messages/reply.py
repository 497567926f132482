"""A complete answer as Messages has it, and what its stream shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from services.codec.events import EndReason, Finish, OutputEvent, Usage
from services.codec.protocols.outputs import Item, Said, Thought, collected, has_calls
from services.codec.protocols.reply import Reply, call_name, json_bytes, told

_REASONS = {
    EndReason.END_OF_TEXT: "end_turn",
    EndReason.STOP_TOKEN: "end_turn",
    EndReason.STOP_STRING: "stop_sequence",
    EndReason.MAX_TOKENS: "max_tokens",
    EndReason.CONTEXT_FULL: "model_context_window_exceeded",
    EndReason.TOOL_CALLS: "end_turn",
    EndReason.CONTENT_FILTER: "refusal",
}


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    answer = collected(events)
    (output,) = answer.outputs
    return json_bytes(
        {
            **message(reply),
            "content": [_block(reply, item) for item in output.items],
            **ending(output.finish, len(output.calls)),
            "usage": usage_object(answer.usage),
            **told(answer.usage),
        }
    )


def token_count(prompt_tokens: int) -> bytes:
    """The answer of count_tokens."""
    return json_bytes({"input_tokens": prompt_tokens})


def _block(reply: Reply, item: Item) -> dict[str, Any]:
    if isinstance(item, Said):
        return text_block(item.text)
    if isinstance(item, Thought):
        shown = item.text if reply.request.reasoning.shown else ""
        return {"type": "thinking", "thinking": shown, "signature": signature(item.text)}
    return {**call_block(item.call_id, item.name), "input": item.input}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call_block(call_id: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_name("toolu_", call_id), "name": name, "input": {}}


def signature(thinking: str) -> str:
    """Clients want one that is not empty and send it back; nobody checks it."""
    return sha256(thinking.encode(errors="replace")).hexdigest()


def message(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.reply_id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
    }


def ending(finish: Finish | None, calls: int = 0) -> dict[str, Any]:
    reason = None if finish is None else _REASONS[finish.reason]
    if finish is not None and has_calls(calls, finish):
        reason = "tool_use"
    return {
        "stop_reason": reason,
        "stop_sequence": None if finish is None else finish.stop,
        "stop_details": None,
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    """Input tokens are those that had to be computed; cached ones are told beside them."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
    }
