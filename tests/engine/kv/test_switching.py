"""The service cache goes off and on under load: no answer fails, and off nothing is written."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tokenway.engine.v1.engine_pb2 import SetServiceCacheRequest

from services.engine.kv.cache_settings import CacheSettings, CacheType, DistributedSettings
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.asked import ask
from tests.engine.harness import Harness, simulated
from tests.engine.served import Served, served
from tests.redis_server import RedisServer, redis_server
from tests.waiting import until

SEED = 11
SWITCHES = 100
CALLERS = 4
POOL = 200


def prompt(number: int) -> Generation:
    return Generation(
        request_id=str(number),
        prompt_ids=[3 + (number * 37 + index * 7) % 900 for index in range(33)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=4, ignore_eos=True),
    )


class Load:
    """Callers that ask one prompt after the other, old ones and new ones, and check the answers."""

    def __init__(self, engine: Served) -> None:
        self.answers = 0
        self._engine = engine
        self._chance = random.Random(SEED)  # noqa: S311  # its numbers repeat
        self._known: dict[int, list[int]] = {}
        self._ends = False

    async def run(self) -> None:
        while not self._ends:
            number = self._chance.randrange(40 + self.answers)
            one = ask(self._engine.engine, prompt(number))
            await one.finished()
            assert one.ids == self._expected(number)
            self.answers += 1

    def _expected(self, number: int) -> list[int]:
        if number not in self._known:
            (self._known[number],) = Harness(simulated()).outputs([prompt(number)])
        return self._known[number]

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as callers:
            for _ in range(CALLERS):
                callers.create_task(self.run())
            try:
                yield
            finally:
                self._ends = True


def writes(server: RedisServer) -> int:
    """Calls of SET since the start."""
    told: bytes = server.ask("INFO", "commandstats")
    for line in told.splitlines():
        if line.startswith(b"cmdstat_set:calls="):
            return int(line.partition(b"=")[2].partition(b",")[0])
    return 0


async def test_a_hundred_switches_under_load_cost_no_answer(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis") as server:
        nodes = DistributedSettings(nodes=(server.address,), timeout_s=30)
        cache = CacheSettings(type=CacheType.DISTRIBUTED, read_timeout_s=30, distributed=nodes)
        async with served(simulated(blocks=POOL), cache=cache) as engine:
            load = Load(engine)
            async with load.going():
                for number in range(SWITCHES):
                    await switched(engine, load, server, enabled=number % 2 == 1)
            figures = engine.caches.figures[Tier.SERVICE]
            assert figures.hit_blocks > 0
            assert figures.misses[CacheMiss.OFF] > 0
            assert figures.skips[Skip.OFF] > 0
            assert figures.skips[Skip.FAILED] == 0


async def switched(engine: Served, load: Load, server: RedisServer, *, enabled: bool) -> None:
    """Switches and waits for a few answers; off, nothing is written meanwhile."""
    answer = await engine.service.SetServiceCache(SetServiceCacheRequest(enabled=enabled))
    assert answer.enabled is enabled
    before = await asyncio.to_thread(writes, server)
    seen = load.answers
    await until(lambda: load.answers >= seen + 2 * CALLERS)
    if not enabled:
        assert await asyncio.to_thread(writes, server) == before
