"""Output events as Chat Completions has them: one object, or a stream of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.codec.events import (
    EndReason,
    Error,
    Finish,
    Heartbeat,
    OutputEvent,
    Start,
    TextDelta,
    Usage,
)
from services.codec.protocols.chat_completions.errors import error_object
from services.codec.protocols.reply import Reply, json_bytes

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"

_REASONS = {
    EndReason.END_OF_TEXT: "stop",
    EndReason.STOP_TOKEN: "stop",
    EndReason.STOP_STRING: "stop",
    EndReason.MAX_TOKENS: "length",
    EndReason.CONTEXT_FULL: "length",
}


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    (finish,) = (event for event in events if isinstance(event, Finish))
    (usage,) = (event for event in events if isinstance(event, Usage))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": None},
        "logprobs": None,
        "finish_reason": _REASONS[finish.reason],
        "stop_reason": finish.stop,
    }
    return json_bytes(
        {**_head(reply, "chat.completion"), "choices": [choice], "usage": _usage_object(usage)}
    )


class Stream:
    """Frames of server-sent events for one answer."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._head = _head(reply, "chat.completion.chunk")
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def frames(self, event: OutputEvent) -> list[bytes]:
        match event:
            case TextDelta(text, choice):
                before, after = self._around_text(choice)
                return [b"%b%b%b" % (before, json_bytes(text), after)]
            case Start():
                return [self._chunk(0, {"role": "assistant", "content": ""})]
            case Finish():
                return [self._chunk(event.choice, {}, event)]
            case Usage():
                return [*self._usage_chunk(event), DONE]
            case Error(error):
                return [_frame(error_object(error))]
            case Heartbeat():
                return [KEEP_ALIVE]

    def _chunk(self, index: int, delta: dict[str, Any], finish: Finish | None = None) -> bytes:
        choice: dict[str, Any] = {
            "index": index,
            "delta": delta,
            "logprobs": None,
            "finish_reason": None if finish is None else _REASONS[finish.reason],
        }
        if finish is not None:
            choice["stop_reason"] = finish.stop
        chunk = {**self._head, "choices": [choice]}
        if self._reply.usage_at_end:
            chunk["usage"] = None
        return _frame(chunk)

    def _around_text(self, choice: int) -> tuple[bytes, bytes]:
        """The bytes before and after a piece of text: all chunks of a choice share them."""
        if choice not in self._around:
            frame = self._chunk(choice, {"content": None})
            before, content, after = frame.partition(b'"content":null')
            self._around[choice] = (before + content[: -len(b"null")], after)
        return self._around[choice]

    def _usage_chunk(self, usage: Usage) -> list[bytes]:
        """Clients overwrite the usage with each chunk: it comes last."""
        if not self._reply.usage_at_end:
            return []
        return [_frame({**self._head, "choices": [], "usage": _usage_object(usage)})]


def _head(reply: Reply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.reply_id}",
        "object": kind,
        "created": reply.created,
        "model": reply.model,
    }


def _usage_object(usage: Usage) -> dict[str, Any]:
    """Cached tokens count among those of the prompt; an end-of-text token counts as drawn."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def _frame(value: Any) -> bytes:
    return b"data: %b\n\n" % json_bytes(value)
