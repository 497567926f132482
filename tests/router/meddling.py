"""A token stream service between a scripted source and the wire that breaks the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from tokenway.stream.v1 import stream_pb2 as pb

from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import TokenSource

Meddle = Callable[[pb.StepFrame], None]


class Meddling(TokenStreamServicer):
    """Changes each frame that leaves, and reads only while it listens.

    Attributes:
        listens: cleared, it reads no more.
        heard: commands that it has read.
    """

    def __init__(self, source: TokenSource, meddle: Meddle = lambda _: None) -> None:
        super().__init__(source)
        self._meddle = meddle
        self.listens = asyncio.Event()
        self.listens.set()
        self.heard: list[pb.SessionRequest] = []

    async def Session(  # noqa: N802  # the contract's name
        self, request_iterator: AsyncIterator[pb.SessionRequest], context: Any
    ) -> AsyncIterator[pb.SessionResponse]:
        async for response in super().Session(self._read(request_iterator), context):
            self._meddle(response.frame)
            yield response

    async def _read(
        self, requests: AsyncIterator[pb.SessionRequest]
    ) -> AsyncIterator[pb.SessionRequest]:
        async for request in requests:
            self.heard.append(request)
            yield request
            await self.listens.wait()


def skip_a_position(frame: pb.StepFrame) -> None:
    """The first stream of the frame goes on one position too far."""
    if frame.first_positions and frame.first_positions[0]:
        frame.first_positions[0] += 1


def repeat_a_position(frame: pb.StepFrame) -> None:
    """The first stream of the frame goes on at the position that it had before."""
    if frame.first_positions and frame.first_positions[0]:
        frame.first_positions[0] -= 1


def speak_of_a_stranger(frame: pb.StepFrame) -> None:
    """There is a token of a stream that was never sent."""
    frame.stream_ids.append(10_000)
    frame.first_positions.append(0)
    frame.counts.append(1)
    frame.token_ids.append(5)
