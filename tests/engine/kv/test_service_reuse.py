"""Engines answer prompts that others have seen by way of the service cache, with equal tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenway.engine.v1 import engine_pb2 as pb

from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    DistributedSettings,
    EmbeddedSettings,
    Sharing,
)
from services.engine.kv.tier import Tier
from services.shared.stream.events import CachedTokens
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    QualityOfService,
    Sampling,
    Stopping,
)
from tests.engine.asked import Asked, ask
from tests.engine.harness import Harness, simulated
from tests.engine.served import Served, served
from tests.redis_server import redis_server
from tests.waiting import until

PROMPT = [3 + 7 * index % 900 for index in range(90)]
USABLE = 22
"""Blocks of four tokens that a prompt of 90 can find."""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[CacheSettings]:
    with redis_server(tmp_path / "redis") as server:
        nodes = DistributedSettings(nodes=(server.address,), timeout_s=30)
        yield CacheSettings(type=CacheType.DISTRIBUTED, read_timeout_s=30, distributed=nodes)


@pytest.fixture(params=["embedded", "redis"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> CacheSettings:
    """Of one engine at a time: a process has the file open once."""
    if request.param == "embedded":
        return embedded(tmp_path)
    settings: CacheSettings = request.getfixturevalue("redis")
    return settings


def embedded(folder: Path) -> CacheSettings:
    file = EmbeddedSettings(path=folder / "kv")
    return CacheSettings(type=CacheType.EMBEDDED, read_timeout_s=30, embedded=file)


def generation(tenant: str | None = None, *, read: bool = True, write: bool = True) -> Generation:
    return Generation(
        request_id="r",
        prompt_ids=PROMPT,
        sampling=Sampling(seed=1),
        stopping=Stopping(max_tokens=12, ignore_eos=True),
        quality_of_service=QualityOfService(tenant=tenant),
        cache=CacheControl(read=read, write=write),
    )


async def answered(engine: Served, asked: Generation) -> Asked:
    one = ask(engine.engine, asked)
    await one.finished()
    return one


def written(engine: Served) -> int:
    return engine.caches.figures[Tier.SERVICE].written_blocks


async def test_a_fresh_engine_answers_from_what_another_has_stored(redis: CacheSettings) -> None:
    (expected,) = Harness(simulated()).outputs([generation()])
    async with (
        served(simulated(), cache=redis) as first,
        served(simulated(), cache=redis) as second,
    ):
        assert (await answered(first, generation())).ids == expected
        await until(lambda: written(first) == USABLE)
        one = await answered(second, generation())
        assert one.ids == expected
        assert one.accepted.cached_tokens == CachedTokens(service=4 * USABLE)
        figures = second.caches.figures[Tier.SERVICE]
        assert (figures.hit_blocks, figures.written_blocks) == (USABLE, 0)


async def test_after_a_restart_what_was_stored_is_found(cache: CacheSettings) -> None:
    async with served(simulated(), cache=cache) as engine:
        before = await answered(engine, generation())
    async with served(simulated(), cache=cache) as engine:
        after = await answered(engine, generation())
    assert before.ids == after.ids
    assert before.accepted.cached_tokens.total == 0
    assert after.accepted.cached_tokens == CachedTokens(service=4 * USABLE)


async def test_equal_prompts_of_two_tenants_share_nothing(cache: CacheSettings) -> None:
    async with served(simulated(), cache=cache) as engine:
        await answered(engine, generation(tenant="one"))
    async with served(simulated(), cache=cache) as engine:
        assert (await answered(engine, generation(tenant="two"))).accepted.cached_tokens.total == 0
        one = await answered(engine, generation(tenant="one"))
        assert one.accepted.cached_tokens.service == 4 * USABLE


async def test_what_is_shared_by_all_is_found_by_all(tmp_path: Path) -> None:
    file = EmbeddedSettings(path=tmp_path)
    cache = CacheSettings(type=CacheType.EMBEDDED, sharing=Sharing.GLOBAL, embedded=file)
    async with served(simulated(), cache=cache) as engine:
        await answered(engine, generation(tenant="one"))
    async with served(simulated(), cache=cache) as engine:
        one = await answered(engine, generation(tenant="two"))
        assert one.accepted.cached_tokens.service == 4 * USABLE


async def test_a_caller_that_reads_and_leaves_nothing_does_so(cache: CacheSettings) -> None:
    async with served(simulated(), cache=cache) as engine:
        await answered(engine, generation(write=False))
        assert written(engine) == 0
        await answered(engine, generation())
        await until(lambda: written(engine) == USABLE)
    async with served(simulated(), cache=cache) as engine:
        one = await answered(engine, generation(read=False, write=False))
        assert one.accepted.cached_tokens.total == 0
        assert engine.caches.figures[Tier.SERVICE].hit_blocks == 0


async def test_a_flush_drops_what_all_tiers_hold(cache: CacheSettings) -> None:
    async with served(simulated(), cache=cache) as engine:
        await answered(engine, generation())
        await until(lambda: written(engine) == USABLE)
        kept = await engine.service.FlushCache(pb.FlushCacheRequest())
        assert kept.dropped_service_blocks == 0
        assert (await answered(engine, generation())).accepted.cached_tokens.service == 4 * USABLE
        dropped = await engine.service.FlushCache(pb.FlushCacheRequest(service=True))
        assert dropped.dropped_service_blocks == USABLE
        assert (await answered(engine, generation())).accepted.cached_tokens.total == 0
        await until(lambda: written(engine) == 2 * USABLE)


async def test_what_each_tier_did_is_told(cache: CacheSettings) -> None:
    async with served(simulated(), cache=cache) as engine:
        await answered(engine, generation())
        await until(lambda: written(engine) == USABLE)
        await engine.service.FlushCache(pb.FlushCacheRequest())
        await answered(engine, generation())
        stats = await engine.service.GetCacheStats(pb.GetCacheStatsRequest())
    assert (stats.enabled, stats.type) == (True, cache.type.value)
    service = stats.tiers[-1]
    assert [tier.tier for tier in stats.tiers] == [1, 2, 3, 4]
    assert (service.hit_blocks, service.read_bytes) == (USABLE, USABLE * 16)
    assert (service.written_blocks, service.written_bytes) == (USABLE, USABLE * 16)
    assert (service.reads, [count.blocks for count in service.misses]) == (2, [USABLE])
    assert service.read_us > 0
