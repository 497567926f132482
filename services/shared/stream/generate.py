"""One generation as an asynchronous iterator over its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

from services.shared.stream.events import CancelReason, Event, Failed, Finished
from services.shared.stream.generation import Generation
from services.shared.stream.outbox import Outbox
from services.shared.stream.source import Submission, TokenSource


async def generate(
    source: TokenSource, generation: Generation, traceparent: str
) -> AsyncGenerator[Event, None]:
    """Yields events until Finished or Failed; leaving early cancels the generation.

    Tokens that came while the reader was busy are one event. Close the iterator
    (`contextlib.aclosing`) so that an early exit cancels at once.

    Raises:
        ServiceError: the generation is not taken.
    """
    outbox: Outbox[Event] = Outbox()
    cancel = source.submit(Submission(generation, traceparent, partial(outbox.put, 0)))
    try:
        while True:
            await outbox.filled()
            for event in outbox.take()[0]:
                yield event
                if isinstance(event, (Finished, Failed)):
                    return
    finally:
        cancel(CancelReason.CLIENT_GONE)
