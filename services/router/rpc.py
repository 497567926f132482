"""EngineService for the fleet: a router looks like one engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.router.cache_stats import total_stats
from services.router.connections.connection import Connection
from services.router.fleet.fleet import Fleet
from services.router.relay.relay import Relay
from services.shared.errors import Code, Unavailable, error_of
from services.shared.stream.load_wire import load_of

if TYPE_CHECKING:
    from typing import Any

    Context = grpc.aio.ServicerContext[Any, Any]

LOAD_INTERVAL_S = 1.0
FAN_OUT_TIMEOUT_S = 10.0

_REFUSALS = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION)

_log = logging.getLogger(__name__)

Response = TypeVar("Response")
Call = Callable[[rpc.EngineServiceStub], Awaitable[Response]]


class FleetServicer(rpc.EngineServiceServicer):
    """Describes, drains and operates all replicas as one."""

    def __init__(self, relay: Relay, fleet: Fleet, connections: Mapping[str, Connection]) -> None:
        self._relay = relay
        self._fleet = fleet
        self._connections = connections

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        response = pb.DescribeResponse()
        response.CopyFrom(self._description())
        response.load.CopyFrom(load_of(self._relay.load()))
        return response

    async def WatchLoad(
        self, request: pb.WatchLoadRequest, context: Context
    ) -> AsyncIterator[pb.WatchLoadResponse]:
        while True:
            yield pb.WatchLoadResponse(load=load_of(self._relay.load()))
            await asyncio.sleep(LOAD_INTERVAL_S)

    async def Drain(self, request: pb.DrainRequest, context: Context) -> pb.DrainResponse:
        await self._relay.drain()
        return pb.DrainResponse()

    async def SetServiceCache(
        self, request: pb.SetServiceCacheRequest, context: Context
    ) -> pb.SetServiceCacheResponse:
        responses = await self._at_all(
            lambda engine: engine.SetServiceCache(request, timeout=FAN_OUT_TIMEOUT_S)
        )
        return pb.SetServiceCacheResponse(enabled=all(response.enabled for response in responses))

    async def FlushCache(
        self, request: pb.FlushCacheRequest, context: Context
    ) -> pb.FlushCacheResponse:
        responses = await self._at_all(
            lambda engine: engine.FlushCache(request, timeout=FAN_OUT_TIMEOUT_S)
        )
        return pb.FlushCacheResponse(
            dropped_blocks=sum(response.dropped_blocks for response in responses),
            dropped_host_blocks=sum(response.dropped_host_blocks for response in responses),
            dropped_service_blocks=sum(response.dropped_service_blocks for response in responses),
        )

    async def GetCacheStats(
        self, request: pb.GetCacheStatsRequest, context: Context
    ) -> pb.GetCacheStatsResponse:
        return total_stats(
            await self._at_all(
                lambda engine: engine.GetCacheStats(request, timeout=FAN_OUT_TIMEOUT_S)
            )
        )

    def _description(self) -> pb.DescribeResponse:
        for name in self._fleet.members():
            description = self._connections[name].description
            if description is not None and self._fleet[name].identity == self._fleet.identity:
                return description
        raise Unavailable("no replica has described itself yet")

    async def _at_all(self, call: Call[Response]) -> list[Response]:
        """Calls every reachable replica; all are called even if one fails."""
        members = self._fleet.members()
        if not members:
            raise Unavailable("no replica is reachable")
        return await asyncio.gather(
            *(_told(name, call(self._connections[name].engine)) for name in members)
        )


async def _told(name: str, call: Awaitable[Response]) -> Response:
    """The response; what a replica refuses is told on. Which replica it was is in the log alone."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        _log.warning("%s failed a call to all replicas: %s", name, error.details())
        code = Code(error.code().value[0])
        # Texts of other codes may be grpc's own, which name addresses.
        text = error.details() if code in _REFUSALS else None
        raise error_of(code, text or "a replica did not answer") from error
