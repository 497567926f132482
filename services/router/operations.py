"""What an operator may ask of a router and do to its replicas."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from services.router.admission.admission import Admission
from services.router.balancing.balancer import Balancer
from services.router.balancing.explanation import Explanation, explain
from services.router.demand import demand_of
from services.router.fleet.fleet import Fleet
from services.router.fleet.replica import Replica
from services.router.relay.relay import Relay
from services.router.replica_spec import MAX_WEIGHT
from services.shared.stream.generation import Generation
from services.shared.stream.limits import within

MAX_CUT_MS = 600_000

_log = logging.getLogger(__name__)


class Link(Protocol):
    """The way to a replica."""

    def cut(self, duration_s: float) -> None:
        """Ends its session, and begins none for so long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operations:
    """Each raises NotFound for a replica that is not here.

    Args:
        links: the ways to the replicas, by address.
    """

    fleet: Fleet
    admission: Admission
    balancer: Balancer
    links: Mapping[str, Link]
    relay: Relay

    def replicas(self) -> list[Replica]:
        """In the order of their names."""
        return sorted(self.fleet, key=lambda replica: replica.name)

    def drain(self, address: str, *, undo: bool) -> Replica:
        """Gives a replica nothing new and moves its generations; or gives it some again."""
        _log.info("%s is to %s", address, "take generations again" if undo else "drain")
        self.fleet.drain(address, undo=undo)
        return self.fleet[address]

    def set_weight(self, address: str, weight: float) -> Replica:
        """Raises InvalidRequest for a weight that is out of bounds."""
        within("weight", weight, 0, MAX_WEIGHT)
        self.fleet.set_weight(address, weight)
        return self.fleet[address]

    def disconnect(self, address: str, duration_ms: int) -> None:
        """Raises InvalidRequest for a time that is too long."""
        within("duration_ms", duration_ms, 0, MAX_CUT_MS)
        name = self.fleet.named(address).name
        _log.warning("the session to %s is cut for %d ms, as was asked", name, duration_ms)
        self.links[name].cut(duration_ms / 1000)

    def explain(self, generation: Generation) -> Explanation:
        """What would become of it now; it is not sent."""
        demand = demand_of(generation, self.fleet.rules.long_prompt_tokens)
        told = explain(demand, self.fleet.snapshot(demand), self.balancer)
        if self.admission.waiting:
            return replace(told, reason=f"{told.reason}; {self.admission.waiting} wait already")
        return told
