"""The figures of a fleet's caches are the sums of its replicas'."""

from __future__ import annotations

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2

from services.router.cache_stats import total_stats


def stats(*, enabled: bool = True, hits: int = 1) -> pb.GetCacheStatsResponse:
    host = pb.TierStats(
        tier=pb.CACHE_TIER_HOST,
        hit_blocks=hits,
        read_bytes=10,
        misses=[pb.MissCount(cause=types_pb2.CACHE_MISS_ABSENT, blocks=2)],
        skips=[pb.SkipCount(cause=pb.CACHE_SKIP_OFF, blocks=3)],
    )
    blocks = pb.BlockCounts(free=1, owned=2, leased=3, cached=4, total=10)
    return pb.GetCacheStatsResponse(enabled=enabled, type="embedded", tiers=[host], blocks=blocks)


def test_counts_add_up_by_tier_and_by_cause() -> None:
    peer = pb.TierStats(tier=pb.CACHE_TIER_PEER, hit_blocks=5)
    second = stats(hits=7)
    second.tiers.append(peer)
    second.tiers[0].misses.add(cause=types_pb2.CACHE_MISS_TIMEOUT, blocks=1)
    total = total_stats([second, stats()])
    assert [(one.tier, one.hit_blocks) for one in total.tiers] == [
        (pb.CACHE_TIER_HOST, 8),
        (pb.CACHE_TIER_PEER, 5),
    ]
    assert [(one.cause, one.blocks) for one in total.tiers[0].misses] == [
        (types_pb2.CACHE_MISS_ABSENT, 4),
        (types_pb2.CACHE_MISS_TIMEOUT, 1),
    ]
    assert [(one.cause, one.blocks) for one in total.tiers[0].skips] == [(pb.CACHE_SKIP_OFF, 6)]
    assert total.tiers[0].read_bytes == 20
    assert (total.blocks.leased, total.blocks.total, total.type) == (6, 20, "embedded")


def test_it_is_on_where_it_is_on_at_all() -> None:
    assert total_stats([stats(), stats()]).enabled
    assert not total_stats([stats(), stats(enabled=False)]).enabled
