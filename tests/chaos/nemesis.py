"""Breaks one engine after the other, and several at a time, and mends each after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from tokenway.router.v1.router_pb2 import DisconnectRequest, DrainReplicaRequest
from tokenway.router.v1.router_pb2_grpc import RouterServiceStub

from tests.chaos.history import History
from tests.faults.cluster import Cluster
from tests.faults.mortal import Mortal
from tests.faults.proxy import Proxy

Fault = Callable[[int, float], Awaitable[None]]


class Nemesis:
    """Has at most all engines but one in its hands at a time.

    Args:
        cluster: with links.
        router: its router.
        chance: decides what happens to whom, when and for how long.
        history: hears of each fault.
    """

    def __init__(
        self, cluster: Cluster, router: RouterServiceStub, chance: Random, history: History
    ) -> None:
        self._cluster = cluster
        self._router = router
        self._chance = chance
        self._history = history
        self._whole = set(range(len(cluster.engines)))
        self._faults: dict[str, Fault] = {
            "kill": self._kill,
            "stop": self._stop,
            "cut": self._cut,
            "silence": self._silence,
            "refuse": self._refuse,
            "terminate": self._terminate,
            "drain": self._drain,
            "disconnect": self._disconnect,
        }

    async def run(self, until_s: float) -> None:
        """Until that time of the event loop; then mends all."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while loop.time() < until_s:
                await asyncio.sleep(self._chance.uniform(0.3, 3))
                if len(self._whole) > 1:
                    at = self._chance.choice(sorted(self._whole))
                    self._whole.remove(at)
                    name = self._chance.choice(list(self._faults))
                    lasts_s = self._chance.choice([0.05, 0.5, 2.0, 6.0])
                    group.create_task(self._break(name, at, lasts_s))

    async def _break(self, name: str, at: int, lasts_s: float) -> None:
        self._history.note("fault", fault=name, engine=at, lasts_s=lasts_s)
        await self._faults[name](at, lasts_s)
        self._history.note("mended", fault=name, engine=at)
        self._whole.add(at)

    def _engine(self, at: int) -> Mortal:
        return self._cluster.engines[at]

    def _link(self, at: int) -> Proxy:
        return self._cluster.links[at]

    async def _kill(self, at: int, lasts_s: float) -> None:
        self._engine(at).kill()
        await asyncio.sleep(lasts_s)
        await asyncio.to_thread(self._engine(at).start)

    async def _terminate(self, at: int, lasts_s: float) -> None:
        await asyncio.to_thread(self._engine(at).service.end)
        await asyncio.sleep(lasts_s)
        await asyncio.to_thread(self._engine(at).start)

    async def _stop(self, at: int, lasts_s: float) -> None:
        self._engine(at).suspend()
        await asyncio.sleep(lasts_s)
        self._engine(at).resume()

    async def _cut(self, at: int, _: float) -> None:
        self._link(at).cut()

    async def _silence(self, at: int, lasts_s: float) -> None:
        self._link(at).hold()
        await asyncio.sleep(lasts_s)
        self._link(at).restore()

    async def _refuse(self, at: int, lasts_s: float) -> None:
        self._link(at).refuse()
        await asyncio.sleep(lasts_s)
        self._link(at).restore()

    async def _drain(self, at: int, lasts_s: float) -> None:
        request = DrainReplicaRequest(address=self._cluster.replica(at))
        await self._router.DrainReplica(request)
        await asyncio.sleep(lasts_s)
        request.undo = True
        await self._router.DrainReplica(request)

    async def _disconnect(self, at: int, lasts_s: float) -> None:
        duration_ms = round(1000 * lasts_s)
        request = DisconnectRequest(address=self._cluster.replica(at), duration_ms=duration_ms)
        await self._router.Disconnect(request)
        await asyncio.sleep(lasts_s)
