"""Which node of a cluster has which of its 16384 slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.engine.kv.stores.node_address import NodeAddress

SLOTS = 16384


class SlotMap:
    """Immutable; `None` where no node has the slot."""

    def __init__(self, owners: Sequence[NodeAddress | None]) -> None:
        self._owners = owners

    def owner(self, slot: int) -> NodeAddress | None:
        return self._owners[slot]

    def addresses(self) -> set[NodeAddress]:
        return {owner for owner in self._owners if owner is not None}

    def moved(self, slot: int, to: NodeAddress) -> SlotMap:
        owners = list(self._owners)
        owners[slot] = to
        return SlotMap(owners)


NOTHING_KNOWN = SlotMap([None] * SLOTS)


def slot_map(answer: Any, asked: NodeAddress) -> SlotMap:
    """Reads an answer to CLUSTER SLOTS; a node without a host is where we `asked`.

    Raises:
        ValueError: it is none.
    """
    owners: list[NodeAddress | None] = [None] * SLOTS
    try:
        for first, last, (host, port, *_), *_ in answer:
            owner = NodeAddress(host.decode() if host else asked.host, port)
            for slot in range(max(first, 0), min(last, SLOTS - 1) + 1):
                owners[slot] = owner
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{asked} gives no map of the cluster's slots") from error
    return SlotMap(owners)
