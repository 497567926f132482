"""Output events as the frames of a stream; what fails after the first is a frame, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from services.codec.events import Error, OutputEvent
from services.codec.exchange import Exchange, note_error
from services.codec.protocols.wire_protocol import EventStream
from services.shared.errors import ServiceError


async def framed(
    stream: EventStream, batches: AsyncIterator[list[OutputEvent]], exchange: Exchange
) -> AsyncGenerator[list[bytes], None]:
    """Yields what is to be written together.

    Raises:
        ServiceError: only before the first frame.
    """
    started = False
    try:
        async for batch in batches:
            started = True
            yield [frame for event in batch for frame in stream.frames(event)]
    except ServiceError as error:
        if not started:
            raise
        note_error(exchange, error)
        yield stream.frames(Error(error))
