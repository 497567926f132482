"""A replica for tests: both services of an engine over a scripted source, on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from tokenway.engine.v1 import engine_pb2_grpc as engine_rpc
from tokenway.stream.v1 import stream_pb2_grpc as stream_rpc

from services.shared.server import serving
from services.shared.stream.servicer import TokenStreamServicer
from tests.router.servicer import ScriptedEngine
from tests.stream_server import SERVICE, playing


@asynccontextmanager
async def replica(
    engine: ScriptedEngine, address: str = "127.0.0.1:0", *, plays: bool = True
) -> AsyncIterator[str]:
    """The address of a replica; at the end it dies without a word."""

    def register(server: grpc.aio.Server) -> None:
        door = engine.door or TokenStreamServicer(engine.source)
        stream_rpc.add_TokenStreamServiceServicer_to_server(door, server)
        engine_rpc.add_EngineServiceServicer_to_server(engine, server)

    async with serving(address, register, [SERVICE], grace_s=0) as door:
        if not plays:
            yield door.address
            return
        async with playing(engine.source):
            yield door.address
