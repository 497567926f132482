"""What a router believes of one replica."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.fleet.ejection import Ejection
from tests.simulation.sent import Counts


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """What the router believes of a replica."""

    name: str
    status: str
    is_described: bool
    ejection: Ejection
    counts: Counts
