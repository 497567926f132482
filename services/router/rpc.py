"""EngineService for the fleet: a router looks like one engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.router.cache_stats import total_stats
from services.router.connections.connection import Connection
from services.router.connections.membership import Membership
from services.router.fleet.fleet import Fleet
from services.router.relay.relay import Relay
from services.shared.errors import Code, ServiceError, Unavailable, error_of
from services.shared.stream.load_wire import load_of
from services.shared.trace_context import call_metadata

if TYPE_CHECKING:
    from typing import Any

    Context = grpc.aio.ServicerContext[Any, Any]

LOAD_INTERVAL_S = 1.0
FAN_OUT_TIMEOUT_S = 10.0

_REFUSALS = (Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.FAILED_PRECONDITION)

_log = logging.getLogger(__name__)

Response = TypeVar("Response")
Call = Callable[[Connection], Awaitable[Response]]


class FleetServicer(rpc.EngineServiceServicer):
    """Describes, drains and operates all replicas as one; what it is for is both."""

    def __init__(self, relay: Relay, fleet: Fleet, membership: Membership) -> None:
        self._relay = relay
        self._fleet = fleet
        self._connections = membership.connections
        self._cache = membership.cache

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        response = pb.DescribeResponse()
        response.CopyFrom(self._description())
        response.role = pb.ROLE_BOTH
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
        self._cache.wanted = request.enabled
        states = await self._at_all(lambda replica: replica.cache.tell())
        return pb.SetServiceCacheResponse(enabled=all(states))

    async def FlushCache(
        self, request: pb.FlushCacheRequest, context: Context
    ) -> pb.FlushCacheResponse:
        responses = await self._at_all(
            lambda replica: replica.engine.FlushCache(
                request, timeout=FAN_OUT_TIMEOUT_S, metadata=call_metadata()
            )
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
                lambda replica: replica.engine.GetCacheStats(
                    request, timeout=FAN_OUT_TIMEOUT_S, metadata=call_metadata()
                )
            )
        )

    def _description(self) -> pb.DescribeResponse:
        for name in self._fleet.members():
            description = self._connections[name].description
            if description is not None and self._fleet[name].identity == self._fleet.identity:
                return description
        raise Unavailable("no replica has described itself yet")

    async def _at_all(self, call: Call[Response]) -> list[Response]:
        """Calls every reachable replica; all are called even if some fail, who then are counted."""
        members = self._fleet.members()
        if not members:
            raise Unavailable("no replica is reachable")
        outcomes = await asyncio.gather(
            *(_told(name, call(self._connections[name])) for name in members)
        )
        errors = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
        if errors:
            text = f"{len(errors)} of {len(members)} replicas failed: {errors[0].message}"
            raise error_of(errors[0].code, text)
        return [outcome for outcome in outcomes if not isinstance(outcome, ServiceError)]


async def _told(name: str, call: Awaitable[Response]) -> Response | ServiceError:
    """The response; what a replica refuses is told on. Which replica it was is in the log alone."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        _log.warning("%s failed a call to all replicas: %s", name, error.details())
        code = Code(error.code().value[0])
        # Texts of other codes may be grpc's own, which name addresses.
        text = error.details() if code in _REFUSALS else None
        return error_of(code, text or "it did not answer")
