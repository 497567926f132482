"""Generations under way for one request: what has come of them, and the way to end them early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from services.shared.errors import ServiceError
from services.shared.stream.events import Cancel, CancelReason, Event, Failed, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission, TokenSource


class Running:
    """Submitted when made, cancelled at the latest when the block ends.

    Tokens of one generation that come while nobody reads are one event. One timer wakes the reader
    of silent generations: a time limit on each read would cost more than the read.

    Args:
        source: takes the generations.
        generations: what to generate; events name them by their place in it.
        traceparent: the trace context of the next hop.
        wake_s: the reader of silent generations is woken at least this often.

    Raises:
        ServiceError: the source does not take a generation; then it goes on with none.
    """

    def __init__(
        self,
        source: TokenSource,
        generations: Sequence[Generation],
        traceparent: str,
        wake_s: float,
    ) -> None:
        self._waiting: list[tuple[int, Event]] = []
        self._reader: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._wake_s = wake_s
        self._cancels: list[Cancel] = []
        try:
            for at, generation in enumerate(generations):
                submission = Submission(generation, traceparent, partial(self._put, at))
                self._cancels.append(source.submit(submission))
        except ServiceError:
            self._cancel_all(CancelReason.UNSPECIFIED)
            raise
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
        self._cancel_all(CancelReason.CLIENT_GONE)

    async def events(self) -> list[tuple[int, Event]]:
        """What came since the last call; nothing when the timer was first."""
        if not self._waiting:
            self._reader = self._loop.create_future()
            await self._reader
        taken, self._waiting = self._waiting, []
        return taken

    def cancel(self, reason: CancelReason, at: int | None = None) -> None:
        """Ends one generation or all; does nothing to those that have ended."""
        if at is None:
            self._cancel_all(reason)
        else:
            self._cancels[at](reason)

    def give_up(self, failure: Failed) -> None:
        """Ends all with an event of our own."""
        self._cancel_all(CancelReason.UNSPECIFIED)
        self._put(0, failure)

    def _cancel_all(self, reason: CancelReason) -> None:
        for cancel in self._cancels:
            cancel(reason)

    def _put(self, at: int, event: Event) -> None:
        if isinstance(event, Tokens) and self._waiting:
            place, last = self._waiting[-1]
            if place == at and isinstance(last, Tokens):
                self._waiting[-1] = (at, last.followed_by(event))
                self._wake()
                return
        self._waiting.append((at, event))
        self._wake()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._wake_s, self._tick)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
