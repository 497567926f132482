"""Every figure of the caches has its place in the contract."""

from __future__ import annotations

import pytest
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.engine.kv.cache_stats import stats_of
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.events import CacheMiss
from tests.engine.harness import simulated
from tests.engine.served import served


async def told(tier: Tier) -> pb.TierStats:
    """What is told of a tier that had some of everything."""
    async with served(simulated()) as engine:
        figures = engine.caches.figures[tier]
        figures.hit(3, 192)
        figures.read(0.25)
        figures.read(0.5)
        figures.wrote(2, 128)
        for number, miss in enumerate(CacheMiss, 1):
            figures.miss(miss, number)
        for number, skip in enumerate(Skip, 1):
            figures.skip(skip, number)
        stats = stats_of(engine.caches, engine.engine.load())
    (found,) = (one for one in stats.tiers if pb.CacheTier.Name(one.tier).endswith(tier.name))
    return found


@pytest.mark.parametrize("tier", Tier)
async def test_what_a_tier_did_is_told(tier: Tier) -> None:
    stats = await told(tier)
    assert (stats.hit_blocks, stats.read_bytes) == (3, 192)
    assert (stats.reads, stats.read_us) == (2, 750_000)
    assert (stats.written_blocks, stats.written_bytes) == (2, 128)
    misses = {types.CacheMiss.Name(one.cause): one.blocks for one in stats.misses}
    assert misses == {f"CACHE_MISS_{miss.name}": at for at, miss in enumerate(CacheMiss, 1)}
    skips = {pb.CacheSkip.Name(one.cause): one.blocks for one in stats.skips}
    assert skips == {f"CACHE_SKIP_{skip.name}": at for at, skip in enumerate(Skip, 1)}


async def test_blocks_of_all_states_sum_up() -> None:
    async with served(simulated()) as engine:
        blocks = stats_of(engine.caches, engine.engine.load()).blocks
    assert blocks.total == 64 == blocks.free + blocks.owned + blocks.leased + blocks.cached
