"""The generations that a client has open on one session, and what it makes of their events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from math import inf

from services.shared.errors import Code
from services.shared.stream.events import (
    Accepted,
    CancelReason,
    Event,
    Failed,
    Finished,
    Refused,
    Sink,
    Tokens,
)

NOT_ACCEPTED = -1
"""The next position of a stream that may have no tokens yet; no event has it."""

_log = logging.getLogger(__name__)


class _Stream:
    """One generation: where its events go, which position comes next, and how many there are."""

    __slots__ = ("delivered", "limit", "next_position", "sink")

    def __init__(self, sink: Sink, delivered: int, limit: float) -> None:
        self.sink = sink
        self.delivered = delivered
        self.limit = limit
        self.next_position = NOT_ACCEPTED


class OpenStreams:
    """Passes each event to the generation that it belongs to and believes no server.

    A server that skips or repeats a position, has tokens before it has accepted or more than were
    asked for, or ends an output that is not complete fails that generation with DATA_LOSS,
    retryable. Events of streams that it
    was never sent are dropped and told once per session. Both are logged with the server's name.
    Events that come after a cancel are dropped.

    Args:
        name: names the server.
        send_cancel: tells the server that it may end a stream.
        on_fault: told of a fault that no generation bears.

    Attributes:
        unknown_events: events of streams that the server was never sent.
    """

    def __init__(
        self,
        name: str,
        send_cancel: Callable[[int, CancelReason], None],
        on_fault: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._name = name
        self._send_cancel = send_cancel
        self._on_fault = on_fault
        self._streams: dict[int, _Stream] = {}
        self._first_id = self._next_id = 0
        self._told_unknown = False
        self.unknown_events = 0

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, sink: Sink, delivered: int, limit: int | None = None) -> int:
        """A new stream; its ID is above all before it.

        Args:
            sink: where its events go.
            delivered: tokens that are known.
            limit: tokens that there may be, these included.
        """
        stream_id, self._next_id = self._next_id, self._next_id + 1
        self._streams[stream_id] = _Stream(sink, delivered, inf if limit is None else limit)
        return stream_id

    def cancel(self, stream_id: int, reason: CancelReason) -> None:
        """Nothing comes of the stream any more; does nothing if it has ended."""
        if self._streams.pop(stream_id, None) is not None:
            self._send_cancel(stream_id, reason)

    def receive(self, events: Iterable[tuple[int, Event | Refused]]) -> None:
        """Takes the events of a frame, in order."""
        streams = self._streams
        for stream_id, event in events:
            stream = streams.get(stream_id)
            if stream is None:
                self._unclaimed(stream_id)
            elif isinstance(event, Tokens) and event.first_position == stream.next_position:
                end = event.first_position + len(event.ids)
                if end > stream.limit:
                    self._break(stream_id, stream, f"{end} tokens of {stream.limit} at most")
                    continue
                stream.next_position = end
                stream.sink(event)
            else:
                self._rare(stream_id, stream, event)

    def lose(self, failed: Failed) -> None:
        """The session has ended: all streams fail, and the next one opened begins a new session."""
        streams = list(self._streams.values())
        self._streams.clear()
        self._first_id = self._next_id
        self._told_unknown = False
        for stream in streams:
            stream.sink(failed)

    def _rare(self, stream_id: int, stream: _Stream, event: Event | Refused) -> None:
        """What comes once for a stream, or should not come."""
        match event:
            case Accepted() if stream.next_position == NOT_ACCEPTED:
                stream.next_position = stream.delivered
                stream.sink(event)
            case Finished() if event.usage.completion_tokens == stream.next_position:
                del self._streams[stream_id]
                stream.sink(event)
            case Failed():
                del self._streams[stream_id]
                stream.sink(event)
            case Refused(message) if stream.next_position != NOT_ACCEPTED:
                _log.error("%s refused stream %d: %s", self._name, stream_id, message)
            case _:
                self._break(stream_id, stream, _what_is_wrong(stream, event))

    def _break(self, stream_id: int, stream: _Stream, wrong: str) -> None:
        _log.error("%s sent %s", self._name, wrong)
        self.cancel(stream_id, CancelReason.UNSPECIFIED)
        message = f"a replica sent {wrong}"
        stream.sink(Failed(code=Code.DATA_LOSS, message=message, retryable=True))

    def _unclaimed(self, stream_id: int) -> None:
        if self._first_id <= stream_id < self._next_id:
            return  # it was cancelled or has ended; what was under way comes late
        self.unknown_events += 1
        if not self._told_unknown:
            self._told_unknown = True
            fault = f"{self._name} sent events of stream {stream_id}, which it was never sent"
            _log.error("%s", fault)
            self._on_fault(fault)


def _what_is_wrong(stream: _Stream, event: Accepted | Tokens | Finished | Refused) -> str:
    accepted = stream.next_position != NOT_ACCEPTED
    match event:
        case Accepted():
            return "a second Accepted"
        case Tokens(position) if accepted:
            return f"position {position} instead of {stream.next_position}"
        case Refused(message):
            return f"a refusal of a new stream: {message}"
        case Finished(usage=usage) if accepted:
            return f"the end of {usage.completion_tokens} tokens after {stream.next_position}"
        case _:
            return f"{type(event).__name__} before Accepted"
