"""What a router has to do, at one moment and since the last, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from tokenway.router.v1 import router_pb2 as pb
from tokenway.types.v1 import types_pb2

from services.launcher.replica_table import role, state
from services.shared.plain_text import plain

BAR = 10
"""Characters of a bar."""

GIB = 2**30
LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What a router told.

    Args:
        at_s: when, on a clock that never jumps.
        told: its answer.
    """

    at_s: float
    told: pb.ListReplicasResponse


def top_view(now: Moment, before: Moment | None = None, fault: str | None = None) -> RenderableType:
    """Rates need a moment before.

    Args: fault: why this is not of now.
    """
    told = now.told
    head = Text(f"{_running(told)} running, {told.waiting} waiting{_rate(now, before)}")
    parts: list[RenderableType] = [head, _replicas(told.replicas)]
    if told.tenants:
        parts.append(_tenants(told.tenants))
    if fault is not None:
        parts.append(Text(f"not of now: {fault}", style="bold red"))
    return Group(*parts)


def _running(told: pb.ListReplicasResponse) -> int:
    return sum(replica.running for replica in told.replicas)


def _rate(now: Moment, before: Moment | None) -> str:
    """A router that was started again has counted from 0, and no rate is known."""
    if before is None or now.at_s <= before.at_s:
        return ""
    tokens = now.told.output_tokens - before.told.output_tokens
    if tokens < 0:
        return ""
    return f", {tokens / (now.at_s - before.at_s):.0f} tokens/s"


def _replicas(replicas: Iterable[pb.Replica]) -> RenderableType:
    table = _table("replica", "state", "role")
    for name in ("running", "waiting", "tokens", "step"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("KV blocks", "device memory"):
        table.add_column(name, no_wrap=True)
    table.add_column("told", justify="right", no_wrap=True)
    for one in replicas:
        load = one.load if one.HasField("load") else None
        table.add_row(
            plain(one.address, LONGEST_NAME),
            state(one.status),
            role(one.role),
            _of(one.running, load.slots if load else 0),
            str(load.waiting) if load else "-",
            str(one.outstanding_tokens),
            f"{load.step_us / 1000:.1f} ms" if load else "-",
            _blocks(load) if load else "-",
            _memory(load) if load else "-",
            f"{one.load_age_ms} ms ago" if load else "-",
        )
    return table


def _of(count: int, most: int) -> str:
    """A count, and how many there may be where that is told."""
    return f"{count}/{most}" if most else str(count)


def _blocks(load: types_pb2.Load) -> str:
    """Those in use, of all; what is cached can be taken."""
    used = load.total_blocks - load.free_blocks - load.cached_blocks
    return (
        f"{_bar(used, load.total_blocks)} {used}/{load.total_blocks}, {load.cached_blocks} cached"
    )


def _memory(load: types_pb2.Load) -> str:
    if not load.HasField("device_memory"):
        return "-"
    memory = load.device_memory
    used, total = memory.used_bytes, memory.total_bytes
    return f"{_bar(used, total)} {used / GIB:.1f}/{total / GIB:.1f} GiB"


def _bar(part: int, whole: int) -> str:
    filled = min(BAR, round(BAR * part / whole)) if whole else 0
    return "█" * filled + "░" * (BAR - filled)


def _tenants(tenants: Iterable[pb.Tenant]) -> RenderableType:
    table = _table("tenant")
    for name in ("running", "waiting", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in tenants:
        counts = (one.running, one.waiting, one.outstanding_tokens)
        table.add_row(plain(one.name, LONGEST_NAME) or "-", *map(str, counts))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table
