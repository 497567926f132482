"""Whether a generation that goes to a replica now begins there, or would wait behind others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from services.router.demand import Demand, Lane
from services.router.fleet.replica import Replica

LOOKAHEAD = 0.125
"""Generations beyond a replica's slots, as a share of them, that wait there for a free one: it
gets the next one between two of our messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomRules:
    """How much may be on its way to one replica.

    Who goes first is decided before the replicas, so little may wait in their own queues.

    Args:
        slots: generations at a time at a replica that does not tell its slots.
        window: prompt tokens that may wait there to be computed, by lane; a prompt that is longer
            goes where none of its lane waits.
    """

    slots: int
    window: Mapping[Lane, int]


def has_room(replica: Replica, demand: Demand, rules: RoomRules, cached_tokens: int = 0) -> bool:
    """Whether `replica` would begin with `demand` at once, or nearly so.

    Args: cached_tokens: of the demand's that are known to be cached there.
    """
    if replica.refuses and not demand.continued:
        return False
    slots = replica.load.slots if replica.load is not None else 0
    slots = slots or rules.slots
    if replica.running >= slots + ceil(slots * LOOKAHEAD):
        return False
    pending = replica.pending[demand.lane]
    to_compute = demand.prompt_tokens - cached_tokens
    return pending == 0 or pending + to_compute <= rules.window[demand.lane]
