"""The replicas behind a router, and the model that they stand for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from services.router.balancing.balancer import Decision
from services.router.balancing.candidate import Candidate, Snapshot
from services.router.balancing.offer import Offer
from services.router.balancing.prefix_index import PrefixIndex
from services.router.clock import Clock
from services.router.demand import Demand
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.judge import Judge
from services.router.fleet.offers import Offers
from services.router.fleet.replica import Replica
from services.router.fleet.room import has_room
from services.router.fleet.ticks import Ticks
from services.router.status import TAKING, Identity, Status
from services.shared.errors import Code, NotFound
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Failed
from services.shared.stream.load import MAX_ROUTERS, Load

SWEEP_S = 0.25
"""How often replicas are judged by time alone."""

STANDSTILL_S = 1.0
"""A sweep that is so late tells of a pause of this process, not of the replicas."""

MAX_NAMED = 16
"""Replicas that an error names."""

REACHABLE = (*TAKING, Status.DRAINING, Status.STARTING, Status.EJECTED)

_log = logging.getLogger(__name__)


class Fleet:
    """Holds replicas by name; a replica of another model or tokenizer than theirs takes nothing.

    The model is that of the first replica that was described, as long as a reachable one has it.

    Args:
        clock: the router's.
        rules: how replicas are judged.
        on_change: called when the state of a replica has changed.

    Attributes:
        index: which replica has which blocks cached.
        evacuate: moves the generations of a replica to others; called for one that is stuck,
            draining or without replicas of its own while another could take them.
    """

    def __init__(
        self,
        clock: Clock,
        rules: FleetRules | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.rules = rules = rules or FleetRules()
        self.index = PrefixIndex()
        self.evacuate: Callable[[str], None] = lambda _: None
        self._clock = clock
        self._on_change = on_change
        self._replicas: dict[str, Replica] = {}
        self._judge = Judge(self._replicas, rules, clock, on_change)
        self._ticks = Ticks(clock, SWEEP_S, self._tick)

    @property
    def identity(self) -> Identity | None:
        """What the fleet serves; None while no replica is described."""
        return self._judge.identity

    @property
    def revision(self) -> int:
        """Counts the identities that the fleet has had."""
        return self._judge.revision

    def routers(self) -> tuple[str, ...]:
        """Those on any way to an engine, this one included."""
        behind = {
            name: None
            for replica in self
            if replica.load is not None and not replica.looped
            for name in replica.load.routers
        }
        return (self.rules.router, *behind)[:MAX_ROUTERS]

    def start(self) -> None:
        """Judges replicas again and again, until `stop`."""
        self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()

    def add(self, replica: Replica) -> None:
        self._replicas[replica.name] = replica
        replica.join(self.rules.health, self._judge.judge)

    def remove(self, name: str) -> None:
        """Forgets a replica; what still comes from it is ignored."""
        self.named(name).leave()
        del self._replicas[name]
        self.index.forget(name)
        self._judge.settle()
        self._on_change()

    def named(self, name: str) -> Replica:
        """Raises NotFound for a replica that is not here."""
        if name not in self._replicas:
            there = ", ".join(sorted(self._replicas)[:MAX_NAMED]) or "none"
            raise NotFound(f"there is no replica {name!r}; there is {there}", field="address")
        return self._replicas[name]

    def __getitem__(self, name: str) -> Replica:
        return self._replicas[name]

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def drain(self, name: str, *, undo: bool = False) -> None:
        """Gives a replica nothing new and moves its generations; or gives it some again."""
        replica = self.named(name)
        replica.drained = not undo
        self._judge.judge(replica)

    def set_weight(self, name: str, weight: float) -> None:
        """Sets a replica's share of new generations."""
        replica = self.named(name)
        _log.info("weight of %s is %g, was %g", name, weight, replica.weight)
        replica.weight = weight
        self._on_change()

    def tell_load(self, name: str, load: Load | None) -> None:
        """A load that came from a replica, or None when its session went down."""
        replica = self._replicas.get(name)
        if replica is None:
            return
        complaint, refused = replica.health.complaint, replica.refuses
        replica.tell_load(load, self._clock.time())
        if load is None:
            self.index.forget(name)
            self._judge.settle()
        elif self.rules.router in load.routers:
            replica.tell_loop()
            self._judge.settle()
        elif replica.health.complaint is not None and complaint is None:
            _log.error("%s tells a load that cannot be: %s", name, replica.health.complaint)
        self._judge.judge(replica)
        if refused and not replica.refuses:
            self._on_change()

    def tell_identity(self, name: str, identity: Identity) -> None:
        """A replica's description; one that comes after its session is ignored."""
        replica = self._replicas.get(name)
        if replica is None or replica.load is None or replica.looped:
            return
        replica.identity = identity
        self.index.identify(name, identity)
        self._judge.settle()
        self._judge.judge(replica)

    def tell_blocks(self, name: str, events: BlockEvents) -> None:
        """Block events that came from a replica."""
        if name in self._replicas:
            self.index.tell(name, events)

    def tell_fault(self, name: str, message: str) -> None:
        """A breach of the protocol that no generation bears; the session's log tells of it."""
        replica = self._replicas.get(name)
        if replica is not None:
            fault = Failed(code=Code.DATA_LOSS, message=message, retryable=True)
            replica.tell_failure(self._clock.time(), fault)

    def is_full(self, demand: Demand) -> bool:
        """Whether replicas take generations and none has room: a snapshot would show no more."""
        room = self.rules.room
        taking = [replica for replica in self if replica.status in TAKING]
        if room is None or not taking:
            return False
        cached = self.index.cached_tokens(demand)
        offers = Offers(self, demand, cached, self.index, self.rules)
        return not any(
            has_room(one, demand, room, cached.get(one.name, 0) + offers.to(one).tokens)
            for one in taking
        )

    def snapshot(self, demand: Demand) -> Snapshot:
        """The fleet as `demand` meets it now."""
        identity, cached = self.identity, self.index.cached_tokens(demand)
        offers = Offers(self, demand, cached, self.index, self.rules)
        return Snapshot(
            model=identity.model if identity else None,
            candidates=[
                self._candidate(replica, demand, cached.get(replica.name, 0), offers.to(replica))
                for replica in self._replicas.values()
            ],
        )

    def renewed(self, decision: Decision, demand: Demand) -> Decision:
        """The same for a demand that has grown since: what of it is cached, and what is offered."""
        cached = self.index.cached_tokens(demand)
        offers = Offers(self, demand, cached, self.index, self.rules)
        return replace(
            decision,
            cached_tokens=cached.get(decision.replica, 0),
            offer=offers.to(self[decision.replica]),
        )

    def _candidate(
        self, replica: Replica, demand: Demand, cached_tokens: int, offer: Offer
    ) -> Candidate:
        room = self.rules.room
        return Candidate(
            name=replica.name,
            epoch=replica.epoch,
            status=replica.status,
            version=replica.identity.version if replica.identity else None,
            weight=replica.weight,
            has_room=room is None or has_room(replica, demand, room, cached_tokens + offer.tokens),
            takes_lane=demand.lane in replica.lanes,
            expected_tokens=replica.expected_tokens,
            pending_tokens=replica.pending_tokens,
            cached_tokens=cached_tokens,
            offer=offer,
            role=replica.role,
            tells_blocks=self.index.known_blocks(replica.name) > 0,
            memory_used=replica.memory_used,
            assigned=replica.assigned,
        )

    def ready(self) -> list[str]:
        """Names of the replicas that take generations."""
        return [replica.name for replica in self if replica.status in TAKING]

    def loads(self) -> list[Load]:
        """Known loads of the reachable replicas of the fleet's model."""
        return [
            replica.load
            for replica in self._reachable()
            if replica.load is not None and replica.health.load_is_known
        ]

    def members(self) -> list[str]:
        """Names of the reachable replicas of the fleet's model."""
        return [replica.name for replica in self._reachable()]

    def _reachable(self) -> list[Replica]:
        return [one for one in self if one.status in REACHABLE and one.identity is not None]

    def sweep(self) -> None:
        """Judges all replicas, and moves what should not stay where it is."""
        self._judge.sweep()
        for replica in self:
            if replica.running and self._judge.should_leave(replica):
                self.evacuate(replica.name)

    def _tick(self, late_s: float) -> None:
        if late_s > STANDSTILL_S:
            _log.warning("the router stood still for %.1f s", late_s)
            now = self._clock.time()
            for replica in self:
                replica.health.excuse(now, late_s)
        self.sweep()
