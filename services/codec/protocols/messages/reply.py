"""Output events as Messages has them: one object, or a stream of blocks."""

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
from services.codec.protocols.messages.errors import error_object
from services.codec.protocols.reply import Reply, json_bytes

_REASONS = {
    EndReason.END_OF_TEXT: "end_turn",
    EndReason.STOP_TOKEN: "end_turn",
    EndReason.STOP_STRING: "stop_sequence",
    EndReason.MAX_TOKENS: "max_tokens",
    EndReason.CONTEXT_FULL: "model_context_window_exceeded",
}


def whole(reply: Reply, events: Sequence[OutputEvent]) -> bytes:
    """The answer as one object; `events` are complete and without Error."""
    (finish,) = (event for event in events if isinstance(event, Finish))
    (usage,) = (event for event in events if isinstance(event, Usage))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return json_bytes(
        {
            **_message(reply),
            "content": [{"type": "text", "text": text, "citations": None}] if text else [],
            **_ending(finish),
            "usage": _usage_object(usage),
        }
    )


class Stream:
    """Frames of server-sent events for one answer; opens and closes its blocks."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._index = 0
        self._is_open = False
        self._finish: Finish | None = None
        self._around_text = (b"", b"")

    def frames(self, event: OutputEvent) -> list[bytes]:
        match event:
            case TextDelta(text):
                opening = self._open()
                before, after = self._around_text
                return [*opening, b"%b%b%b" % (before, json_bytes(text), after)]
            case Start():
                return [self._start(event)]
            case Finish():
                self._finish = event
                return self._close()
            case Usage():
                return self._end(event)
            case Error(error):
                return [_frame("error", error_object(error, self._reply.request_id))]
            case Heartbeat():
                return [_frame("ping", {"type": "ping"})]

    def _start(self, start: Start) -> bytes:
        usage = Usage(
            prompt_tokens=start.prompt_tokens,
            cached_tokens=start.cached_tokens,
            completion_tokens=0,
        )
        message = {
            **_message(self._reply),
            "content": [],
            **_ending(None),
            "usage": _usage_object(usage),
        }
        return _frame("message_start", {"type": "message_start", "message": message})

    def _open(self) -> list[bytes]:
        if self._is_open:
            return []
        self._is_open = True
        block = {"type": "text", "text": "", "citations": None}
        # All deltas of a block share the bytes around their text.
        delta = {"type": "text_delta", "text": None}
        frame = self._block_frame("content_block_delta", delta=delta)
        before, _, after = frame.rpartition(b"null")
        self._around_text = (before, after)
        return [self._block_frame("content_block_start", content_block=block)]

    def _close(self) -> list[bytes]:
        if not self._is_open:
            return []
        frame = self._block_frame("content_block_stop")
        self._is_open = False
        self._index += 1
        return [frame]

    def _end(self, usage: Usage) -> list[bytes]:
        delta = {
            "type": "message_delta",
            "delta": _ending(self._finish),
            "usage": _usage_object(usage),
        }
        return [_frame("message_delta", delta), _frame("message_stop", {"type": "message_stop"})]

    def _block_frame(self, kind: str, **content: Any) -> bytes:
        return _frame(kind, {"type": kind, "index": self._index, **content})


def token_count(prompt_tokens: int) -> bytes:
    """The answer of count_tokens."""
    return json_bytes({"input_tokens": prompt_tokens})


def _message(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.reply_id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
    }


def _ending(finish: Finish | None) -> dict[str, Any]:
    return {
        "stop_reason": None if finish is None else _REASONS[finish.reason],
        "stop_sequence": None if finish is None else finish.stop,
        "stop_details": None,
    }


def _usage_object(usage: Usage) -> dict[str, Any]:
    """Input tokens are those that had to be computed; cached ones are told beside them."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "service_tier": "standard",
    }


def _frame(kind: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json_bytes(value))
