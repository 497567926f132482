"""A real token stream service on loopback, and a session to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.server import serving
from services.shared.stream.blocks import BlockSink
from services.shared.stream.client_session import ClientSession
from services.shared.stream.load import Load
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import BlockSource, TokenSource
from services.shared.tls.way import CLEAR
from tests.scripted_source import ScriptedSource
from tests.waiting import PATIENCE_S

SERVICE = "tokenway.stream.v1.TokenStreamService"


@asynccontextmanager
async def stream_server(
    source: TokenSource, address: str = "127.0.0.1:0", blocks: BlockSource | None = None
) -> AsyncIterator[str]:
    """The address of a server over `source`; at the end its calls are cut."""

    def register(server: grpc.aio.Server) -> None:
        rpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(source, blocks), server)

    async with serving(address, register, [SERVICE], grace_s=0) as door:
        yield door.address


class Watched:
    """A session's loads, to be waited for."""

    def __init__(self) -> None:
        self.loads: list[Load | None] = []
        self._changed = asyncio.Event()

    def __call__(self, load: Load | None) -> None:
        self.loads.append(load)
        self._changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.loads) < count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def client(
    address: str, watched: Watched | None = None, on_blocks: BlockSink | None = None
) -> AsyncIterator[ClientSession]:
    """A session that is up."""
    watched = watched or Watched()
    session = ClientSession(CLEAR, address, watched, on_blocks=on_blocks)
    running = asyncio.ensure_future(session.run())
    try:
        await watched.until(1)
        yield session
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await session.close()


@asynccontextmanager
async def playing(source: ScriptedSource) -> AsyncIterator[None]:
    """Lets a source play by itself."""
    task = asyncio.ensure_future(source.play())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
