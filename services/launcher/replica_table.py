"""Replicas of a router as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from tokenway.router.v1 import router_pb2 as pb

VERSION_CHARACTERS = 12


def replica_table(replicas: Sequence[pb.Replica], waiting: int = 0) -> RenderableType:
    """One line for each; below, what waits in the router."""
    table = _table("replica", "state", "weight", "pool", "version")
    for name in ("running", "tokens", "load age", "blocks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in replicas:
        table.add_row(
            one.address,
            state(one.status),
            f"{one.weight:g}",
            one.pool or "all",
            one.version[:VERSION_CHARACTERS] or "-",
            str(one.running),
            str(one.outstanding_tokens),
            f"{one.load_age_ms} ms" if one.HasField("load") else "-",
            str(one.known_blocks),
            one.reason,
        )
    return Group(table, f"{waiting} generations wait") if waiting else table


def explanation_table(told: pb.ExplainResponse) -> RenderableType:
    """The decision, then each replica, the best first."""
    table = _table("replica", "state", "room")
    for name in ("cached", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in told.options:
        table.add_row(
            one.address,
            state(one.status),
            "yes" if one.has_room else "no",
            str(one.cached_tokens),
            "-" if isinf(one.cost) else f"{one.cost:.0f}",
            one.reason,
        )
    return Group(f"{told.address or 'no replica'}: {told.reason}", f"policy {told.policy}", table)


def state(status: pb.ReplicaStatus.ValueType) -> str:
    """As people say it; a state that is not known here by its number."""
    if status not in pb.ReplicaStatus.values():
        return str(status)
    return pb.ReplicaStatus.Name(status).removeprefix("REPLICA_STATUS_").lower()


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table
