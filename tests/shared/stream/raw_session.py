"""A client's session that a test conducts by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.stream.event_wire import events_of
from services.shared.stream.events import Event, Refused
from services.shared.stream.generation_wire import request_of
from tests.recorder import generation
from tests.waiting import PATIENCE_S


class RawSession:
    """A session by hand: any command, read when the test wants."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        stub: Any = rpc.TokenStreamServiceStub(channel)
        self._call = stub.Session()
        self.received: list[tuple[int, Event | Refused]] = []

    async def submit(self, stream_id: int, name: str, **options: Any) -> None:
        request = request_of(generation(name, **options))
        await self.write(pb.SessionRequest(submit=pb.Submit(stream_id=stream_id, request=request)))

    async def write(self, command: pb.SessionRequest) -> None:
        await self._call.write(command)

    async def read(self) -> pb.SessionResponse:
        async with asyncio.timeout(PATIENCE_S):
            response: pb.SessionResponse = await self._call.read()
        self.received += events_of(response.frame)
        return response

    async def read_until(self, condition: Any) -> None:
        while not condition(self.received):
            await self.read()

    async def done_writing(self) -> None:
        await self._call.done_writing()

    async def code(self) -> grpc.StatusCode:
        """The status, after the last response was read."""
        async for _ in self._call:
            pass
        code: grpc.StatusCode = await self._call.code()
        return code
