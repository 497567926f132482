"""What the caches of engines did, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.types.v1 import types_pb2

Replicas = Mapping[str, pb.GetCacheStatsResponse | str]
"""What each replica told, or why it did not."""

_STATES = ("free", "owned", "leased", "cached")
_KNOWN_TIERS = [tier for tier in pb.CacheTier.values() if tier]


def cache_tables(total: pb.GetCacheStatsResponse, replicas: Replicas) -> RenderableType:
    """The tiers, the blocks by state, and a line for each replica where there are some."""
    shown = [_head(total), _tiers(total.tiers), _blocks(total.blocks)]
    return Group(*shown, _replicas(replicas)) if replicas else Group(*shown)


def _head(total: pb.GetCacheStatsResponse) -> str:
    return f"service cache: {'on' if total.enabled else 'off'}, type {total.type or '-'}"


def _tiers(tiers: Iterable[pb.TierStats]) -> RenderableType:
    table = _table("tier")
    for name in ("hits", "rate", "misses"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for name in ("read", "mean", "written", "size", "left out"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in tiers:
        misses = {_miss(miss.cause): miss.blocks for miss in one.misses if miss.blocks}
        skips = {_skip(skip.cause): skip.blocks for skip in one.skips if skip.blocks}
        table.add_row(
            _tier(one.tier),
            str(one.hit_blocks),
            _share(one.hit_blocks, sum(misses.values())),
            str(sum(misses.values())),
            _causes(misses),
            _size(one.read_bytes),
            f"{one.read_us / one.reads / 1000:.1f} ms" if one.reads else "-",
            str(one.written_blocks),
            _size(one.written_bytes),
            str(sum(skips.values())),
            _causes(skips),
        )
    return table


def _blocks(blocks: pb.BlockCounts) -> str:
    counts = {state: getattr(blocks, state) for state in _STATES}
    words = " + ".join(f"{count} {state}" for state, count in counts.items())
    return f"blocks: {words} = {sum(counts.values())} of {blocks.total}\n"


def _replicas(replicas: Replicas) -> RenderableType:
    table = _table("replica", "cache")
    for name in (*(f"{_tier(tier)} hits" for tier in _KNOWN_TIERS), *_STATES, "blocks"):
        table.add_column(name, justify="right", no_wrap=True)
    for address, told in sorted(replicas.items()):
        if isinstance(told, str):
            table.add_row(address, told)
            continue
        hits = {one.tier: one.hit_blocks for one in told.tiers}
        table.add_row(
            address,
            f"{'on' if told.enabled else 'off'}, {told.type or '-'}",
            *(str(hits.get(tier, 0)) for tier in _KNOWN_TIERS),
            *(str(getattr(told.blocks, state)) for state in _STATES),
            str(told.blocks.total),
        )
    return table


def _tier(value: pb.CacheTier.ValueType) -> str:
    return _word(pb.CacheTier.items(), "CACHE_TIER_", value)


def _miss(value: types_pb2.CacheMiss.ValueType) -> str:
    return _word(types_pb2.CacheMiss.items(), "CACHE_MISS_", value)


def _skip(value: pb.CacheSkip.ValueType) -> str:
    return _word(pb.CacheSkip.items(), "CACHE_SKIP_", value)


def _word(names: Iterable[tuple[str, int]], prefix: str, value: int) -> str:
    """As people say it; a value that is not known here by its number."""
    known = {number: name for name, number in names}
    return known.get(value, str(value)).removeprefix(prefix).lower().replace("_", " ")


def _causes(blocks: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in blocks.items())


def _share(hits: int, misses: int) -> str:
    return f"{hits / (hits + misses):.0%}" if hits + misses else "-"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table
