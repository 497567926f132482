"""A token stream service whose every word a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.server import serving
from services.shared.stream.event_wire import frame_of
from services.shared.stream.events import Event, Refused
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.load_wire import load_of
from tests.stream_server import SERVICE
from tests.waiting import PATIENCE_S


class Puppet(rpc.TokenStreamServiceServicer):
    """A server that says what the test says, to one session after the other."""

    def __init__(self) -> None:
        self.sessions = 0
        self.commands: asyncio.Queue[pb.SessionRequest] = asyncio.Queue()
        self._says: asyncio.Queue[pb.SessionResponse | None] = asyncio.Queue()

    async def Generate(  # noqa: N802  # the contract's name
        self, _: pb.GenerateRequest, __: Any
    ) -> AsyncIterator[pb.GenerateResponse]:
        raise NotImplementedError
        yield

    async def Session(  # noqa: N802  # the contract's name
        self, request_iterator: AsyncIterator[pb.SessionRequest], _: Any
    ) -> AsyncIterator[pb.SessionResponse]:
        self.sessions += 1
        yield pb.SessionResponse(load=load_of(Load(state=ReplicaState.READY)))
        reader = asyncio.ensure_future(self._read(request_iterator))
        try:
            while (response := await self._says.get()) is not None:
                yield response
        finally:
            reader.cancel()

    def say(self, *events: tuple[int, Event | Refused]) -> None:
        for stream_id, event in events:
            self._says.put_nowait(pb.SessionResponse(frame=frame_of({stream_id: [event]})))

    def say_frame(self, frame: pb.StepFrame) -> None:
        self._says.put_nowait(pb.SessionResponse(frame=frame))

    def say_blocks(self, blocks: pb.BlockEvents) -> None:
        self._says.put_nowait(pb.SessionResponse(blocks=blocks))

    def hang_up(self) -> None:
        self._says.put_nowait(None)

    async def commanded(self) -> pb.SessionRequest:
        return await asyncio.wait_for(self.commands.get(), PATIENCE_S)

    async def _read(self, requests: AsyncIterator[pb.SessionRequest]) -> None:
        async for request in requests:
            self.commands.put_nowait(request)


@asynccontextmanager
async def puppet_server(puppet: Puppet) -> AsyncIterator[str]:
    def register(server: grpc.aio.Server) -> None:
        rpc.add_TokenStreamServiceServicer_to_server(puppet, server)

    async with serving("127.0.0.1:0", register, [SERVICE], grace_s=0) as door:
        yield door.address
