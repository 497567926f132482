"""Replicas of a router as tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from tokenway.engine.v1 import engine_pb2
from tokenway.router.v1 import router_pb2 as pb

VERSION_CHARACTERS = 12


def replica_table(replicas: Sequence[pb.Replica], waiting: int = 0) -> RenderableType:
    """One line for each; below, what waits in the router."""
    table = _table("replica", "state", "role", "weight", "pool", "version")
    for name in ("running", "tokens", "load age", "blocks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in replicas:
        table.add_row(
            one.address,
            state(one.status),
            role(one.role),
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
    table = _table("replica", "state", "role", "room")
    for name in ("cached", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for one in told.options:
        table.add_row(
            one.address,
            state(one.status),
            role(one.role),
            "yes" if one.has_room else "no",
            str(one.cached_tokens),
            "-" if isinf(one.cost) else f"{one.cost:.0f}",
            _with_source(one),
        )
    return Group(f"{told.address or 'no replica'}: {told.reason}", f"policy {told.policy}", table)


def state(status: pb.ReplicaStatus.ValueType) -> str:
    """As people say it; a state that is not known here by its number."""
    if status not in pb.ReplicaStatus.values():
        return str(status)
    return pb.ReplicaStatus.Name(status).removeprefix("REPLICA_STATUS_").lower()


def role(value: engine_pb2.Role.ValueType) -> str:
    """As people say it; one that is not told, or not known here, is `both`."""
    if value not in engine_pb2.Role.values() or value == engine_pb2.ROLE_UNSPECIFIED:
        return "both"
    return engine_pb2.Role.Name(value).removeprefix("ROLE_").lower()


def _with_source(option: pb.Option) -> str:
    """The reason, and which replica it speaks of."""
    source = option.peer or option.prefill
    return f"{option.reason} ({source})" if source else option.reason


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table
