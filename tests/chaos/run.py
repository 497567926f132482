"""A chaos run: clients that ask without a pause, engines that break, and what is left."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tokenway.router.v1.router_pb2 import ListReplicasRequest
from tokenway.router.v1.router_pb2_grpc import RouterServiceStub

from services.shared.channel import open_channel
from tests.chaos.asked import drawn
from tests.chaos.client import Client, Known
from tests.chaos.door import Door, doors
from tests.chaos.history import History
from tests.chaos.nemesis import Nemesis
from tests.faults.cluster import Cluster
from tests.metrics_scrape import miscounted

DIFFERENT = 48
"""So many different requests there are; each is asked many times."""

REST_S = 60.0
"""How long the services have to come to rest when nothing breaks any more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chaos:
    """A run.

    Args:
        seconds: how long things break.
        seed: decides what is asked and what breaks.
        besides: what else happens, until that time of the event loop.
    """

    cluster: Cluster
    history: History
    seconds: float
    clients: int
    seed: int
    besides: Callable[[float], Coroutine[Any, Any, None]] | None = None

    async def run(self) -> None:
        """All that happens is in the history."""
        async with (
            doors(self.cluster.stack) as both,
            open_channel(self.cluster.router.address) as channel,
        ):
            router = RouterServiceStub(channel)
            known = await self._undisturbed(both[0])
            until_s = asyncio.get_running_loop().time() + self.seconds
            nemesis = Nemesis(self.cluster, router, self._chance("nemesis"), self.history)
            names = (f"r{number}" for number in itertools.count())
            async with asyncio.TaskGroup() as group:
                group.create_task(nemesis.run(until_s))
                if self.besides is not None:
                    group.create_task(self.besides(until_s))
                for number in range(self.clients):
                    client = Client(
                        door=both[number % 2],
                        known=known,
                        chance=self._chance(f"client {number}"),
                        names=names,
                        history=self.history,
                    )
                    group.create_task(client.run(until_s))
            await self._rest(router)

    def _chance(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")  # noqa: S311 no secret

    async def _undisturbed(self, door: Door) -> Sequence[Known]:
        asked = drawn(self._chance("asked"), self.cluster.model, DIFFERENT)
        answers = await asyncio.gather(*(door.ask(one, f"u{at}") for at, one in enumerate(asked)))
        for one, answer in zip(asked, answers, strict=True):
            assert answer.complete, f"{one}: {answer}"
        return [Known(one, answer) for one, answer in zip(asked, answers, strict=True)]

    async def _rest(self, router: RouterServiceStub) -> None:
        """Notes what does not come to rest."""
        await self.cluster.ready()
        deadline_s = asyncio.get_running_loop().time() + REST_S
        while left := await self._left(router):
            if asyncio.get_running_loop().time() > deadline_s:
                break
            await asyncio.sleep(0.1)
        for one in [*left, *await asyncio.to_thread(miscounted, self.cluster.stack)]:
            self.history.note("left", left=one)
        ended = self.cluster.router.service.lines(message="generation ended")
        continued = sum(line["attempts"] > 1 for line in ended)
        self.history.note("continued", answers=continued)

    async def _left(self, router: RouterServiceStub) -> list[str]:
        """What engines and router still hold."""
        listed = await router.ListReplicas(ListReplicasRequest())
        left = [f"{listed.waiting} wait in the router"] if listed.waiting else []
        left += [
            f"the router has {one.running} running at {one.address}, {one.outstanding_tokens} "
            "tokens outstanding"
            for one in listed.replicas
            if one.running or one.outstanding_tokens
        ]
        for engine in self.cluster.engines:
            load = (await asyncio.to_thread(engine.service.describe)).load
            if load.running or load.waiting or load.outstanding_tokens:
                left.append(f"{engine.name} has {load.running} running, {load.waiting} waiting")
            if load.free_blocks + load.cached_blocks != load.total_blocks:
                left.append(
                    f"{engine.name} has {load.free_blocks} free and {load.cached_blocks} cached "
                    f"of {load.total_blocks} blocks"
                )
        return left
