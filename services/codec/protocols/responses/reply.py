"""A complete answer as Responses has it, and what its stream shares with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.codec.events import EndReason, Finish, OutputEvent, Usage
from services.codec.protocols.outputs import Item, collected
from services.codec.protocols.reply import Reply, json_bytes, told
from services.codec.protocols.responses.output_items import item_object
from services.codec.protocols.responses.request import INCLUDE

_DEFAULTS: dict[str, Any] = {
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "usage": None,
}
_INCOMPLETE = {
    EndReason.MAX_TOKENS: "max_output_tokens",
    EndReason.CONTEXT_FULL: "max_output_tokens",
    EndReason.CONTENT_FILTER: "content_filter",
}
"""Why an answer is not all that the model would have said."""


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    answer = collected(events)
    (output,) = answer.outputs
    return json_bytes(finished(reply, output.items, output.finish, answer.usage))


def finished(reply: Reply, items: Sequence[Item], finish: Finish, usage: Usage) -> dict[str, Any]:
    return {
        **response(reply, status_of(finish)),
        "output": [
            item_object(reply, at, item, item_status(at, items, finish))
            for at, item in enumerate(items)
        ],
        "usage": _usage_object(usage),
        **told(usage),
        "incomplete_details": (
            {"reason": _INCOMPLETE[finish.reason]} if finish.reason in _INCOMPLETE else None
        ),
    }


def status_of(finish: Finish) -> str:
    return "incomplete" if finish.reason in _INCOMPLETE else "completed"


def item_status(at: int, items: Sequence[Item], finish: Finish) -> str:
    """What ends an answer early cuts the last item off."""
    return status_of(finish) if at == len(items) - 1 else "completed"


def response(reply: Reply, status: str) -> dict[str, Any]:
    repeated = {name: value for name, value in reply.request.echo.items() if name != INCLUDE}
    return {
        "id": f"resp_{reply.reply_id}",
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "model": reply.model,
        "output": [],
        **_DEFAULTS,
        **repeated,
    }


def token_count(prompt_tokens: int) -> bytes:
    """The answer of input_tokens."""
    return json_bytes({"object": "response.input_tokens", "input_tokens": prompt_tokens})


def _usage_object(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
