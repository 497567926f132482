"""A store that is down, hangs, is full or loses what it had: answers go on, causes are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    DistributedSettings,
    EmbeddedSettings,
)
from services.engine.kv.figures import TierFigures
from services.engine.kv.stores import breaker
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.asked import Asked, ask
from tests.engine.harness import Harness, simulated
from tests.engine.served import Served, served
from tests.redis_server import RedisServer, ServerOptions, redis_server
from tests.waiting import until

BLOCKS = 10
PROMPT = Generation(
    request_id="r",
    prompt_ids=[3 + 7 * index for index in range(4 * BLOCKS + 1)],
    sampling=Sampling(seed=1),
    stopping=Stopping(max_tokens=6, ignore_eos=True),
)
TIMEOUT_S = 0.1
FULL = ServerOptions(lines=("--maxmemory", "1", "--maxmemory-policy", "noeviction"))


@pytest.fixture(autouse=True)
def _short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker, "FIRST_REST_S", 0.01)
    monkeypatch.setattr(breaker, "LONGEST_REST_S", 0.02)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path / "redis") as running:
        yield running


@asynccontextmanager
async def engine_with(server: RedisServer) -> AsyncIterator[Served]:
    nodes = DistributedSettings(nodes=(server.address,), timeout_s=TIMEOUT_S)
    cache = CacheSettings(type=CacheType.DISTRIBUTED, read_timeout_s=TIMEOUT_S, distributed=nodes)
    async with served(simulated(), cache=cache) as engine:
        yield engine


async def answered(engine: Served, generation: Generation = PROMPT) -> Asked:
    """The right answer, though nothing of the prompt is in the pool."""
    await engine.engine.flush_cache()
    one = ask(engine.engine, generation)
    await one.finished()
    assert [one.ids] == Harness(simulated()).outputs([generation])
    return one


async def at_work(engine: Served) -> None:
    """Asks until all blocks come from the store."""
    while (await answered(engine)).accepted.cached_tokens.service != 4 * BLOCKS:
        pass


def figures(engine: Served) -> TierFigures:
    return engine.caches.figures[Tier.SERVICE]


async def test_a_store_that_is_down_at_the_start_is_used_when_it_comes(server: RedisServer) -> None:
    server.kill()
    async with engine_with(server) as engine:
        one = await answered(engine)
        assert (await one.finished()).timeline.cache_miss is CacheMiss.UNREACHABLE
        await until(lambda: figures(engine).skips[Skip.FAILED])
        server.start()
        await at_work(engine)


async def test_a_store_that_hangs_costs_its_time_alone(server: RedisServer) -> None:
    async with engine_with(server) as engine:
        await at_work(engine)
        server.suspend()
        one = await answered(engine)
        assert (await one.finished()).timeline.cache_miss is CacheMiss.TIMEOUT
        assert figures(engine).misses[CacheMiss.TIMEOUT] >= BLOCKS
        server.resume()
        await at_work(engine)


async def test_a_store_that_hangs_in_the_end_does_not_hold_the_end_up(server: RedisServer) -> None:
    async with engine_with(server) as engine:
        await at_work(engine)
        server.suspend()
        await answered(engine)


async def test_a_store_that_is_full_takes_nothing(tmp_path: Path) -> None:
    with redis_server(tmp_path / "full", FULL) as server:
        async with engine_with(server) as engine:
            await answered(engine)
            await until(lambda: figures(engine).skips[Skip.FAILED] == BLOCKS)
            one = await answered(engine)
            assert (await one.finished()).timeline.cache_miss is not None
            assert figures(engine).hit_blocks == 0


async def test_what_a_store_loses_is_computed_and_stored_again(server: RedisServer) -> None:
    async with engine_with(server) as engine:
        await at_work(engine)
        server.ask("FLUSHALL")
        one = await answered(engine)
        assert one.accepted.cached_tokens.total == 0
        await at_work(engine)


async def test_a_store_that_dies_amid_reads_costs_what_it_had(server: RedisServer) -> None:
    async with engine_with(server) as engine:
        await at_work(engine)
        await engine.engine.flush_cache()
        one = ask(engine.engine, PROMPT)
        server.kill()
        await one.finished()
        assert [one.ids] == Harness(simulated()).outputs([PROMPT])
        await answered(engine)
        server.start()
        await at_work(engine)


async def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "kv"
    cache = CacheSettings(type=CacheType.EMBEDDED, embedded=EmbeddedSettings(path=folder))
    async with served(simulated(), cache=cache) as engine:
        await at_work(engine)
    file = folder / "data.mdb"
    file.write_bytes(b"\xa5" * file.stat().st_size)
    async with served(simulated(), cache=cache) as engine:
        await answered(engine)
        await at_work(engine)
