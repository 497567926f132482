"""TokenStreamService over a token source; engines and routers serve it alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.access.rpc_guard import current_caller
from services.shared.stream.event_wire import response_of
from services.shared.stream.events import Failed
from services.shared.stream.generate import generate
from services.shared.stream.generation import MAX_TIMEOUT_MS, Generation
from services.shared.stream.generation_wire import generation_from, owned
from services.shared.stream.server_session import ServerSession
from services.shared.stream.source import BlockSource, TokenSource

if TYPE_CHECKING:
    import grpc

    GenerateContext = grpc.aio.ServicerContext[
        pb.GenerateRequest, AsyncIterator[pb.GenerateResponse]
    ]
    SessionContext = grpc.aio.ServicerContext[
        AsyncIterator[pb.SessionRequest], AsyncIterator[pb.SessionResponse]
    ]


def within(generation: Generation, remaining_s: float | None) -> Generation:
    """The generation with the call's deadline, where that is the earlier one."""
    quality = generation.quality_of_service
    if remaining_s is None or remaining_s * 1000 >= (quality.timeout_ms or MAX_TIMEOUT_MS):
        return generation
    quality = replace(quality, timeout_ms=max(1, int(remaining_s * 1000)))
    return replace(generation, quality_of_service=quality)


class TokenStreamServicer(rpc.TokenStreamServiceServicer):
    """Both doors of a source: one generation per call, or many per session.

    The tenant of a caller who is known is that of its generations, whatever they say.

    Args:
        blocks: the source's own; None where it has none, and who asks for them hears nothing.
    """

    def __init__(self, source: TokenSource, blocks: BlockSource | None = None) -> None:
        self._source = source
        self._blocks = blocks

    async def Generate(
        self, request: pb.GenerateRequest, context: GenerateContext
    ) -> AsyncIterator[pb.GenerateResponse]:
        metadata = dict(context.invocation_metadata() or ())
        traceparent = str(metadata.get("traceparent", ""))
        generation = owned(generation_from(request), current_caller.get().tenant)
        generation = within(generation, context.time_remaining())
        events = generate(self._source, generation, traceparent)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Failed):
                    raise event.error()
                yield response_of(event)

    async def Session(
        self, request_iterator: AsyncIterator[pb.SessionRequest], context: SessionContext
    ) -> AsyncIterator[pb.SessionResponse]:
        session = ServerSession(self._source, self._blocks, current_caller.get().tenant)
        reader = asyncio.create_task(session.read(request_iterator))
        try:
            async for response in session.responses():
                yield response
            await reader
        finally:
            session.close()
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
