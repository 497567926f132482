"""A streamed answer as Messages has it: a machine from output events to blocks.

Blocks follow one another and are numbered from 0. The official client leaves out frames without
an event's name, and parses the fragments of a call's input strictly.
"""

from __future__ import annotations

from typing import Any

from services.codec.events import (
    Error,
    Finish,
    Heartbeat,
    OutputEvent,
    ReasoningDelta,
    Start,
    TextDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    Usage,
)
from services.codec.protocols.messages.errors import error_object
from services.codec.protocols.messages.reply import (
    call_block,
    ending,
    message,
    signature,
    text_block,
    usage_object,
)
from services.codec.protocols.outputs import Called, Item, Said, Thought, object_text
from services.codec.protocols.reply import Reply, json_bytes, told


class Stream:
    """Frames of server-sent events for one answer; opens and closes its blocks."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._index = 0
        self._calls = 0
        self._open: Item | None = None
        self._finish: Finish | None = None
        self._around_text = (b"", b"")

    def frames(self, event: OutputEvent) -> list[bytes]:
        match event:
            case TextDelta() | ReasoningDelta():
                return self._delta_frames(event)
            case ToolStart() | ToolArguments() | ToolEnd():
                return self._call(event)
            case Start() | Usage():
                return self._border(event)
            case Finish():
                self._finish = event
                return self._close()
            case Error(error):
                return [_frame("error", error_object(error, self._reply.request_id))]
            case Heartbeat():
                return [_frame("ping", {"type": "ping"})]

    def _delta_frames(self, event: TextDelta | ReasoningDelta) -> list[bytes]:
        if not event.text:
            return []
        return (
            self._text(event.text) if isinstance(event, TextDelta) else self._thinking(event.text)
        )

    def _border(self, event: Start | Usage) -> list[bytes]:
        return [self._start(event)] if isinstance(event, Start) else self._end(event)

    def _start(self, start: Start) -> bytes:
        usage = Usage(
            prompt_tokens=start.prompt_tokens,
            cached_tokens=start.cached_tokens,
            completion_tokens=0,
        )
        told = {
            **message(self._reply),
            "content": [],
            **ending(None),
            "usage": usage_object(usage),
        }
        return _frame("message_start", {"type": "message_start", "message": told})

    def _text(self, text: str) -> list[bytes]:
        opening: list[bytes] = []
        if not isinstance(self._open, Said):
            opening = self._begin(Said(), text_block(""))
            # All deltas of a block share the bytes around their text.
            before, _, after = self._delta("text_delta", text=None).rpartition(b"null")
            self._around_text = (before, after)
        before, after = self._around_text
        return [*opening, b"%b%b%b" % (before, json_bytes(text), after)]

    def _thinking(self, text: str) -> list[bytes]:
        frames: list[bytes] = []
        if not isinstance(self._open, Thought):
            frames = self._begin(Thought(), {"type": "thinking", "thinking": "", "signature": ""})
        if isinstance(self._open, Thought):
            self._open.text += text
        if self._reply.request.reasoning.shown:
            frames.append(self._delta("thinking_delta", thinking=text))
        return frames

    def _call(self, event: ToolStart | ToolArguments | ToolEnd) -> list[bytes]:
        if isinstance(event, ToolStart):
            self._calls += 1
            called = Called(event.call_id, event.name)
            return self._begin(called, call_block(event.call_id, event.name))
        if not isinstance(self._open, Called):
            return []
        if isinstance(event, ToolArguments):
            self._open.sent += event.fragment
            return [self._delta("input_json_delta", partial_json=event.fragment)]
        self._open.arguments, self._open.valid = event.arguments, event.valid
        return self._close()

    def _begin(self, item: Item, block: dict[str, Any]) -> list[bytes]:
        closing = self._close()
        self._open = item
        return [*closing, self._block_frame("content_block_start", content_block=block)]

    def _close(self) -> list[bytes]:
        if self._open is None:
            return []
        frames = [*self._rest(self._open), self._block_frame("content_block_stop")]
        self._open = None
        self._index += 1
        return frames

    def _rest(self, item: Item) -> list[bytes]:
        """A signature after thinking; what a call's input lacks to be an object."""
        match item:
            case Thought():
                return [self._delta("signature_delta", signature=signature(item.text))]
            case Called():
                rest = object_text(item)[len(item.sent) :]
                return [self._delta("input_json_delta", partial_json=rest)] if rest else []
            case Said():
                return []

    def _end(self, usage: Usage) -> list[bytes]:
        delta = {
            "type": "message_delta",
            "delta": ending(self._finish, self._calls),
            "usage": usage_object(usage),
            **told(usage),
        }
        return [_frame("message_delta", delta), _frame("message_stop", {"type": "message_stop"})]

    def _delta(self, kind: str, **content: Any) -> bytes:
        return self._block_frame("content_block_delta", delta={"type": kind, **content})

    def _block_frame(self, kind: str, **content: Any) -> bytes:
        return _frame(kind, {"type": kind, "index": self._index, **content})


def _frame(kind: str, value: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json_bytes(value))
