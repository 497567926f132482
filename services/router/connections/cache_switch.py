"""The fleet's service cache on or off: also for replicas that come later, or come back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

TIMEOUT_S = 5.0
RETRY_S = 1.0

_log = logging.getLogger(__name__)


class CacheSwitch:
    """What is wanted of all replicas.

    Attributes:
        wanted: on or off; None while nobody has said, and each replica is as it started.
    """

    def __init__(self) -> None:
        self.wanted: bool | None = None


class CacheFollower:
    """Tells one replica what is wanted, until it has taken it.

    Args:
        switch: of the fleet.
        engine: the replica, asked for at each call.
        address: that people know it by.
    """

    def __init__(
        self, switch: CacheSwitch, engine: Callable[[], rpc.EngineServiceStub], address: str
    ) -> None:
        self._switch = switch
        self._engine = engine
        self._address = address
        self._is_due = asyncio.Event()
        self._turn = asyncio.Lock()

    async def tell(self) -> bool | None:
        """Tells what is wanted now; returns the state that the replica has then.

        None where nothing is wanted. Calls take turns, so that the last state is the one that
        stays.

        Raises:
            AioRpcError: the replica did not take it; `run` tells it again.
        """
        async with self._turn:
            wanted = self._switch.wanted
            if wanted is None:
                return None
            self._is_due.set()
            request = pb.SetServiceCacheRequest(enabled=wanted)
            response = await self._engine().SetServiceCache(request, timeout=TIMEOUT_S)
            self._is_due.clear()
            return response.enabled

    async def greet(self) -> None:
        """As `tell`, for a replica that has come; what it does not take now it is told later."""
        try:
            await self.tell()
        except grpc.aio.AioRpcError as error:
            _log.warning("%s does not switch its cache: %s", self._address, error.details())

    async def run(self) -> None:
        """Tells again what was not taken. Ends by cancellation."""
        while True:
            await self._is_due.wait()
            await asyncio.sleep(RETRY_S)
            if self._is_due.is_set():
                await self.greet()
