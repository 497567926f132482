"""Connections to the replicas that there are, as these come and go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.router.connections.cache_switch import CacheSwitch
from services.router.connections.connection import Connection
from services.router.connections.discovery import Discovery
from services.router.fleet.fleet import Fleet
from services.router.replica_spec import ReplicaSpec
from services.shared.grpc_traffic import Traffic
from services.shared.tasks import Tasks
from services.shared.tls.way import Way

CRASH_PAUSE_S = 1.0
ROUNDS = "membership"

_log = logging.getLogger(__name__)


class Membership:
    """Has a connection to each replica that is named.

    A replica that is named no more takes nothing new; its connection ends with its last generation.

    Args: way: to the replicas.

    Attributes:
        connections: by address.
        cache: what is wanted of all replicas' service cache.
        traffic: of the sessions with all of them.
    """

    def __init__(self, fleet: Fleet, discovery: Discovery, interval_s: float, way: Way) -> None:
        self.connections: dict[str, Connection] = {}
        self.cache = CacheSwitch()
        self.traffic = Traffic()
        self._fleet = fleet
        self._discovery = discovery
        self._interval_s = interval_s
        self._way = way
        self._named: dict[str, ReplicaSpec] = {}
        self._runs: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Asks who is there, at once and again and again, inside the block."""
        async with Tasks(self._begin_again) as self._tasks:
            await self._follow()
            self._tasks.start(ROUNDS, self._keep())
            try:
                yield
            finally:
                for address in self.connections:  # that we leave them is no loss of theirs
                    self._fleet.remove(address)
        for connection in self.connections.values():
            await connection.close()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._follow()

    async def _follow(self) -> None:
        named = await self._discovery.find()
        for address, spec in named.items():
            self._name(address, spec)
        for address in [address for address in self.connections if address not in named]:
            await self._let_go(address)
        self._named = named

    def _name(self, address: str, spec: ReplicaSpec) -> None:
        before = self._named.get(address)
        if address not in self.connections:
            _log.info("%s is a replica now", address)
            connection = Connection(spec, self._fleet, self.cache, self._way, self.traffic)
            self.connections[address] = connection
            self._runs[address] = self._tasks.start(address, connection.run())
        elif before is None:  # it was on its way out
            self._fleet.drain(address, undo=True)
        else:
            if before.weight != spec.weight:  # what an operator has set stands until then
                self._fleet.set_weight(address, spec.weight)
            self._fleet[address].lanes = spec.lanes

    async def _let_go(self, address: str) -> None:
        if address in self._named:
            _log.info("%s is named no more", address)
            self._fleet.drain(address)
        if self._fleet[address].running:
            return
        run = self._runs.pop(address)
        run.cancel()
        await asyncio.wait([run])
        self._fleet.remove(address)
        await self.connections.pop(address).close()

    def _begin_again(self, name: str, _: Exception) -> None:
        """A connection that crashes fails alone and is begun again."""
        if name in self.connections:
            run = self._run_later(self.connections[name])
            self._runs[name] = self._tasks.start(name, run)
        elif name == ROUNDS:
            self._tasks.start(ROUNDS, self._keep())

    async def _run_later(self, connection: Connection) -> None:
        await asyncio.sleep(CRASH_PAUSE_S)
        await connection.run()
