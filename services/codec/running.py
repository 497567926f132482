"""A generation under way: what has come of it, and the way to end it early."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from services.shared.stream.events import CancelReason, Event, Failed, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission, TokenSource


class Running:
    """Submitted when made, cancelled at the latest when the block ends.

    Tokens that come while nobody reads are one event. One timer wakes the reader of a silent
    generation: a time limit on each read would cost more than the read.

    Args:
        source: takes the generation.
        generation: what to generate.
        traceparent: the trace context of the next hop.
        wake_s: the reader of a silent generation is woken at least this often.

    Raises:
        ServiceError: the source does not take the generation.
    """

    def __init__(
        self, source: TokenSource, generation: Generation, traceparent: str, wake_s: float
    ) -> None:
        self._waiting: list[Event] = []
        self._reader: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._wake_s = wake_s
        self._cancel = source.submit(Submission(generation, traceparent, self._put))
        self._timer = self._loop.call_later(wake_s, self._tick)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._cancel(CancelReason.CLIENT_GONE)

    async def events(self) -> list[Event]:
        """What came since the last call; nothing when the timer was first."""
        if not self._waiting:
            self._reader = self._loop.create_future()
            await self._reader
        taken, self._waiting = self._waiting, []
        return taken

    def cancel(self, reason: CancelReason) -> None:
        """Ends it; does nothing when it has ended."""
        self._cancel(reason)

    def give_up(self, failure: Failed) -> None:
        """Ends it with an event of our own."""
        self._cancel(CancelReason.UNSPECIFIED)
        self._put(failure)

    def _put(self, event: Event) -> None:
        last = self._waiting[-1] if self._waiting else None
        if isinstance(event, Tokens) and isinstance(last, Tokens):
            self._waiting[-1] = last.followed_by(event)
        else:
            self._waiting.append(event)
        self._wake()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._wake_s, self._tick)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
