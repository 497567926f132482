"""The figures of a fleet's caches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from google.protobuf.message import Message
from tokenway.engine.v1 import engine_pb2 as pb


def total_stats(responses: Sequence[pb.GetCacheStatsResponse]) -> pb.GetCacheStatsResponse:
    """Counts are summed; enabled where all are, and of the type that the first one names."""
    total = pb.GetCacheStatsResponse(
        enabled=all(response.enabled for response in responses),
        type=responses[0].type if responses else "",
    )
    tiers: dict[pb.CacheTier.ValueType, list[pb.TierStats]] = defaultdict(list)
    for response in responses:
        _add(total.blocks, response.blocks, _STATES)
        for tier in response.tiers:
            tiers[tier.tier].append(tier)
    total.tiers.extend(_total_tier(tiers[tier]) for tier in sorted(tiers))
    return total


def _total_tier(tiers: Sequence[pb.TierStats]) -> pb.TierStats:
    misses: dict[int, int] = defaultdict(int)
    skips: dict[int, int] = defaultdict(int)
    total = pb.TierStats(tier=tiers[0].tier)
    for tier in tiers:
        _add(total, tier, _COUNTS)
        for miss in tier.misses:
            misses[miss.cause] += miss.blocks
        for skip in tier.skips:
            skips[skip.cause] += skip.blocks
    for cause in sorted(misses):
        total.misses.add(blocks=misses[cause]).cause = cause  # type: ignore[assignment]
    for cause in sorted(skips):
        total.skips.add(blocks=skips[cause]).cause = cause  # type: ignore[assignment]
    return total


def _add(total: Message, more: Message, names: Iterable[str]) -> None:
    for name in names:
        setattr(total, name, getattr(total, name) + getattr(more, name))


_STATES = ("free", "owned", "leased", "cached", "total")
_COUNTS = ("hit_blocks", "read_bytes", "reads", "read_us", "written_blocks", "written_bytes")
