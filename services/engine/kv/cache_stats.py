"""What the caches did, as the contract tells it."""

from __future__ import annotations

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.engine.kv.caches import Caches
from services.engine.kv.figures import TierFigures
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.load import Load

_TIERS = {
    Tier.DEVICE: pb.CACHE_TIER_DEVICE,
    Tier.HOST: pb.CACHE_TIER_HOST,
    Tier.PEER: pb.CACHE_TIER_PEER,
    Tier.SERVICE: pb.CACHE_TIER_SERVICE,
}
_SKIPS = {
    Skip.QUEUE_FULL: pb.CACHE_SKIP_QUEUE_FULL,
    Skip.OFF: pb.CACHE_SKIP_OFF,
    Skip.FAILED: pb.CACHE_SKIP_FAILED,
    Skip.PRESENT: pb.CACHE_SKIP_PRESENT,
    Skip.NOT_WORTH: pb.CACHE_SKIP_NOT_WORTH,
}


def stats_of(caches: Caches, load: Load) -> pb.GetCacheStatsResponse:
    """Args: load: of the engine, for the states of its blocks."""
    return pb.GetCacheStatsResponse(
        enabled=caches.switch.enabled,
        type=caches.type.value,
        tiers=[_tier(tier, figures) for tier, figures in caches.figures.items()],
        blocks=_blocks(load),
    )


def _tier(tier: Tier, figures: TierFigures) -> pb.TierStats:
    return pb.TierStats(
        tier=_TIERS[tier],
        hit_blocks=figures.hit_blocks,
        misses=[
            pb.MissCount(cause=types.CacheMiss.ValueType(cause), blocks=blocks)
            for cause, blocks in sorted(figures.misses.items())
        ],
        read_bytes=figures.read_bytes,
        reads=figures.reads.count,
        read_us=round(figures.reads.total * 1e6),
        written_blocks=figures.written_blocks,
        written_bytes=figures.written_bytes,
        skips=[
            pb.SkipCount(cause=_SKIPS[cause], blocks=blocks)
            for cause, blocks in sorted(figures.skips.items())
        ],
    )


def _blocks(load: Load) -> pb.BlockCounts:
    idle = load.free_blocks + load.leased_blocks + load.cached_blocks
    return pb.BlockCounts(
        free=load.free_blocks,
        owned=load.total_blocks - idle,
        leased=load.leased_blocks,
        cached=load.cached_blocks,
        total=load.total_blocks,
    )
