"""Breaks nodes of a store, turns the cache off and on and flushes it, and looks at the books."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

import grpc

from tests.chaos.history import History
from tests.faults.cluster import Cluster
from tests.kv.books import flush, stats_of, switch
from tests.redis_server import RedisServer

PAUSE_S = (0.2, 2.0)
LASTS_S = (0.05, 0.5, 3.0)
MOST_NODES = 3
"""So many nodes are broken at a time at most: one more than may be."""


class StoreNemesis:
    """Args: as of `tests.chaos.nemesis.Nemesis`; nodes: of the store."""

    def __init__(
        self, cluster: Cluster, nodes: Sequence[RedisServer], chance: Random, history: History
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._chance = chance
        self._history = history
        self._whole = set(range(len(nodes)))
        self._acts: dict[str, Callable[[], Awaitable[None]]] = {
            "kill a node": self._kill,
            "stop a node": self._stop,
            "turn the cache off": self._turn_off,
            "flush": self._flush,
        }

    async def run(self, until_s: float) -> None:
        """Until that time of the event loop; then mends all."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while loop.time() < until_s:
                await asyncio.sleep(self._chance.uniform(*PAUSE_S))
                await self._audit()
                name = self._chance.choice(list(self._acts))
                group.create_task(self._act(name))
        await self._switch(enabled=True)

    async def _act(self, name: str) -> None:
        self._history.note("fault", fault=name)
        await self._acts[name]()
        self._history.note("mended", fault=name)

    async def _audit(self) -> None:
        """Notes engines whose blocks do not sum up; one that is dead has none."""
        for engine in self._cluster.engines:
            try:
                async with asyncio.timeout(1):
                    await stats_of(engine.address)
            except AssertionError as error:
                self._history.note("left", left=f"{engine.name}: {error}")
            except (grpc.aio.AioRpcError, TimeoutError):
                continue

    def _taken(self) -> int | None:
        """A node that is whole; None while enough are broken."""
        if len(self._nodes) - len(self._whole) >= MOST_NODES or not self._whole:
            return None
        at = self._chance.choice(sorted(self._whole))
        self._whole.remove(at)
        return at

    async def _kill(self) -> None:
        at = self._taken()
        if at is not None:
            self._nodes[at].kill()
            await asyncio.sleep(self._chance.choice(LASTS_S))
            await asyncio.to_thread(self._nodes[at].start)
            self._whole.add(at)

    async def _stop(self) -> None:
        at = self._taken()
        if at is not None:
            self._nodes[at].suspend()
            await asyncio.sleep(self._chance.choice(LASTS_S))
            self._nodes[at].resume()
            self._whole.add(at)

    async def _turn_off(self) -> None:
        await self._switch(enabled=False)
        await asyncio.sleep(self._chance.choice(LASTS_S))
        await self._switch(enabled=True)

    async def _switch(self, *, enabled: bool) -> None:
        """Engines that are dead hear of it when they are back."""
        try:
            await switch(self._cluster.router.address, enabled=enabled)
        except (grpc.aio.AioRpcError, AssertionError) as error:
            self._history.note("not switched", why=str(error)[:200])

    async def _flush(self) -> None:
        service = self._chance.random() < 0.3
        try:
            await flush(self._cluster.router.address, service=service)
        except grpc.aio.AioRpcError as error:
            self._history.note("not flushed", why=error.details())
