"""What the replicas of a fleet have of one prompt, or could compute of it, for each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from services.router.balancing.offer import NO_OFFER, Offer
from services.router.balancing.prefix_index import PrefixIndex
from services.router.chain import Layout
from services.router.demand import Demand
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.fleet.room import has_room
from services.router.status import TAKING, Role, Status

LENDING = (*TAKING, Status.DRAINING)
"""States in which a replica's blocks can be fetched."""


class Offers:
    """Blocks move between replicas of one layout of which each can fetch.

    What is cached is fetched from the replica that has most of it; what is cached nowhere is
    computed by a prefill replica that has room, if it is enough to be worth that.

    Args:
        replicas: of the fleet.
        cached: tokens of the demand that each has, by name.
    """

    def __init__(
        self,
        replicas: Iterable[Replica],
        demand: Demand,
        cached: Mapping[str, int],
        index: PrefixIndex,
        rules: FleetRules,
    ) -> None:
        self._demand = demand
        self._cached = cached
        self._index = index
        self._rules = rules
        self._most: dict[Layout, Replica] = {}
        self._prefill: dict[Layout, Replica] = {}
        if demand.reads_cache:
            for replica in replicas:
                self._note(replica)

    def to(self, replica: Replica) -> Offer:
        """What the best of them has for `replica`."""
        layout = self._index.layout(replica.name)
        if layout is None or not _fetches(replica):
            return NO_OFFER
        own, most = self._tokens(replica), self._most.get(layout)
        found = max(own, self._tokens(most))
        prefill = self._prefill.get(layout) if replica.role is not Role.PREFILL else None
        if prefill is not None and self._is_worth_computing(found):
            blocks = (self._demand.prompt_tokens - 1) // layout.block_size
            return Offer(
                source=prefill.name,
                tokens=max(0, blocks * layout.block_size - own),
                is_prefill=True,
                cached_tokens=self._tokens(prefill),
                behind=self._peer(prefill, most),
            )
        peer = self._peer(replica, most)
        if peer is None:
            return NO_OFFER
        return Offer(source=peer, tokens=found - own, cached_tokens=found)

    def _note(self, replica: Replica) -> None:
        layout = self._index.layout(replica.name)
        if layout is None or replica.status not in LENDING or not _fetches(replica):
            return
        if self._tokens(replica) > self._tokens(self._most.get(layout)):
            self._most[layout] = replica
        if self._can_prefill(replica):
            best = self._prefill.get(layout)
            if best is None or self._rank(replica) < self._rank(best):
                self._prefill[layout] = replica

    def _can_prefill(self, replica: Replica) -> bool:
        """Whether it computes prompts for others and would begin with this one at once."""
        demand, room = self._demand, self._rules.room
        return (
            replica.role is Role.PREFILL
            and replica.status in TAKING
            and replica.weight > 0
            and demand.writes_cache
            and demand.lane in replica.lanes
            and (replica.name, replica.epoch) not in demand.avoid
            and (room is None or has_room(replica, demand, room, self._tokens(replica)))
        )

    def _rank(self, replica: Replica) -> tuple[int, float, int, str]:
        expected = replica.expected_tokens
        ahead = inf if expected is None else expected - self._tokens(replica)
        return TAKING.index(replica.status), ahead, replica.assigned, replica.name

    def _is_worth_computing(self, found: int) -> bool:
        threshold = self._rules.prefill.threshold_tokens
        return 0 < threshold <= self._demand.prompt_tokens - found

    def _peer(self, replica: Replica, most: Replica | None) -> str | None:
        """The one that has most, if it has enough more than `replica`."""
        least = self._rules.prefill.peer_tokens
        more = self._tokens(most) - self._tokens(replica)
        return most.name if most is not None and 0 < least <= more else None

    def _tokens(self, replica: Replica | None) -> int:
        return 0 if replica is None else self._cached.get(replica.name, 0)


def _fetches(replica: Replica) -> bool:
    return replica.load is not None and replica.load.fetches_blocks
