"""A generation under way: what has come of it, and the way to end it early."""

from __future__ import annotations

from functools import partial

from services.shared.stream.events import CancelReason, Event
from services.shared.stream.generation import Generation
from services.shared.stream.outbox import Outbox
from services.shared.stream.source import Submission, TokenSource


class Running:
    """Submitted when made. Tokens that come while nobody reads are one event.

    Raises:
        ServiceError: the source does not take the generation.
    """

    def __init__(self, source: TokenSource, generation: Generation, traceparent: str) -> None:
        self._outbox: Outbox[Event] = Outbox()
        submission = Submission(generation, traceparent, partial(self._outbox.put, 0))
        self._cancel = source.submit(submission)

    async def events(self, timeout_s: float) -> list[Event]:
        """What came since the last call, or nothing when `timeout_s` is over."""
        await self._outbox.filled(timeout_s)
        return self._outbox.take().get(0, [])

    def cancel(self, reason: CancelReason) -> None:
        """Ends it; does nothing when it has ended."""
        self._cancel(reason)
