"""What people see of the caches of engines."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2

from services.launcher.cache_table import Replicas, cache_tables

BLOCKS = pb.BlockCounts(free=5, owned=2, leased=1, cached=4, total=12)


def printed(total: pb.GetCacheStatsResponse, replicas: Replicas | None = None) -> list[str]:
    """The lines that say something, with single spaces."""
    out = StringIO()
    Console(file=out, width=200, markup=False).print(cache_tables(total, replicas or {}))
    return [" ".join(line.split()) for line in out.getvalue().splitlines() if line.split()]


def service_tier() -> pb.TierStats:
    return pb.TierStats(
        tier=pb.CACHE_TIER_SERVICE,
        hit_blocks=30,
        misses=[
            pb.MissCount(cause=types_pb2.CACHE_MISS_ABSENT, blocks=8),
            pb.MissCount(cause=types_pb2.CACHE_MISS_NO_ROOM, blocks=2),
            pb.MissCount(cause=types_pb2.CACHE_MISS_OFF, blocks=0),
        ],
        read_bytes=30 * 737_280,
        reads=4,
        read_us=10_000,
        written_blocks=7,
        written_bytes=7 * 1024,
        skips=[pb.SkipCount(cause=pb.CACHE_SKIP_NOT_WORTH, blocks=3)],
    )


def test_a_tier_has_its_rates_and_causes() -> None:
    told = pb.GetCacheStatsResponse(
        enabled=True, type="embedded", tiers=[service_tier()], blocks=BLOCKS
    )
    head, columns, _, service, blocks = printed(told)
    assert head == "service cache: on, type embedded"
    assert columns == "tier hits rate misses why read mean written size left out why"
    assert service == (
        "service 30 75% 10 8 absent, 2 no room 21.09 MiB 2.5 ms 7 7 KiB 3 3 not worth"
    )
    assert blocks == "blocks: 5 free + 2 owned + 1 leased + 4 cached = 12 of 12"


def test_a_tier_that_was_never_asked_has_no_rates() -> None:
    told = pb.GetCacheStatsResponse(tiers=[pb.TierStats(tier=pb.CACHE_TIER_PEER)])
    head, *_, peer, _ = printed(told)
    assert head == "service cache: off, type -"
    assert peer == "peer 0 - 0 0 B - 0 0 B 0"


def test_each_replica_has_a_line_and_one_that_does_not_answer_says_so() -> None:
    one = pb.GetCacheStatsResponse(enabled=True, type="none", tiers=[service_tier()], blocks=BLOCKS)
    *_, columns, _, first, second = printed(one, {"e:2": "unavailable", "e:1": one})
    assert columns == (
        "replica cache device hits host hits peer hits service hits free owned leased cached blocks"
    )
    assert first == "e:1 on, none 0 0 0 30 5 2 1 4 12"
    assert second == "e:2 unavailable"


def test_values_of_a_newer_contract_are_shown_by_their_numbers() -> None:
    tier = pb.TierStats.FromString(pb.TierStats(hit_blocks=1).SerializeToString() + b"\x08\x63")
    *_, line, _ = printed(pb.GetCacheStatsResponse(tiers=[tier]))
    assert line.split()[0] == "99"
