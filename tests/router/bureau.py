"""An admission before replicas whose places the test gives back by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from services.router.admission.admission import Admission
from services.router.admission.admission_rules import AdmissionRules
from services.router.balancing.balancer import Decision
from services.router.demand import Demand, Lane
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.fleet.room import RoomRules
from services.router.relay.leg import Leg
from services.shared.addresses import next_address, root_address
from services.shared.errors import ServiceError
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.generation import PriorityClass
from services.shared.stream.load import Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.kept_attempt import KeptAttempt
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

WINDOW = 10_000
BLOCK_TOKENS = 10
SLOTS = 8
PLACES = SLOTS + 1
"""A replica takes an eighth more than its slots."""


def demand(
    tenant: str = "",
    prompt: int = 10,
    *,
    output: int = 10,
    lane: Lane = Lane.SHORT,
    batch: bool = False,
    weight: float | None = None,
    model: str = "m",
    version: str | None = None,
    avoid: frozenset[tuple[str, int]] = frozenset(),
) -> Demand:
    return Demand(
        model=model,
        token_ids=range(prompt),
        output_tokens=output,
        lane=lane,
        tenant=tenant,
        weight=weight,
        priority_class=PriorityClass.BATCH if batch else PriorityClass.INTERACTIVE,
        version=version,
        avoid=avoid,
    )


@dataclass(eq=False)
class Visitor:
    """An applicant that notes what becomes of it."""

    bureau: Bureau
    demand: Demand
    deadline: float | None = None
    leg: Leg | None = None
    went_at: float | None = None
    refusal: ServiceError | None = None
    left: bool = False

    def go(self, decision: Decision) -> None:
        self._hear()
        self.went_at = self.bureau.clock.now
        self.bureau.went.append(self)
        replica = self.bureau.fleet[decision.replica]
        self.leg = Leg(replica, decision, self.demand, self.went_at, KeptAttempt())

    def refuse(self, error: ServiceError) -> None:
        self._hear()
        self.refusal = error

    @property
    def waits(self) -> bool:
        return self.leg is None and self.refusal is None and not self.left

    def _hear(self) -> None:
        assert self.waits, "heard of it twice"


@dataclass
class Bureau:
    """Replicas with `PLACES` each, all up."""

    names: tuple[str, ...] = ("a",)
    rules: AdmissionRules = field(default_factory=AdmissionRules)
    window: int = WINDOW
    went: list[Visitor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        windows = dict.fromkeys(Lane, self.window)
        self.fleet = Fleet(self.clock, FleetRules(room=RoomRules(slots=SLOTS, window=windows)))
        for name in self.names:
            self.fleet.add(Replica(name, ScriptedSource()))
            self.come(name)
        self.admission = Admission(self.fleet, self.clock, lambda: 0.5, self.rules)

    def come(self, name: str) -> None:
        """A replica is up; nobody pumps."""
        self.fleet.tell_load(name, Load(state=ReplicaState.READY))
        self.fleet.tell_identity(name, IDENTITY)

    def die(self, name: str) -> None:
        self.fleet.tell_load(name, None)

    def cache(self, name: str, tokens: int) -> None:
        """A replica tells that it has the first tokens of all prompts."""
        identity = replace(IDENTITY, layout_id="l", block_size=BLOCK_TOKENS, shares_blocks=True)
        addresses = [root_address(identity.version, identity.layout_id, b"")]
        for start in range(0, tokens, BLOCK_TOKENS):
            block = range(start, start + BLOCK_TOKENS)
            addresses.append(next_address(addresses[-1], block))
        self.fleet.index.identify(name, identity)
        events = BlockEvents(sequence=1, snapshot=True, stored=addresses[1:])
        self.fleet.index.tell(name, events)

    def enter(self, wanted: Demand, timeout_s: float | None = None) -> Visitor:
        deadline = None if timeout_s is None else self.clock.now + timeout_s
        visitor = Visitor(self, wanted, deadline)
        self.admission.enter(visitor)
        return visitor

    def resume(self, wanted: Demand) -> Visitor:
        visitor = Visitor(self, wanted)
        self.admission.resume(visitor)
        return visitor

    def leave(self, visitor: Visitor) -> None:
        visitor.left = True
        self.admission.leave(visitor)

    def begin(self, visitor: Visitor) -> None:
        """Its prompt is computed."""
        assert visitor.leg is not None
        visitor.leg.begin(self.clock.now)
        self.admission.pump()

    def finish(self, visitor: Visitor) -> None:
        """It gives its place back."""
        assert visitor.leg is not None
        visitor.leg.end("finished")
        self.admission.pump()

    def fill(self) -> list[Visitor]:
        """Takes all places, with prompts that are computed."""
        visitors = [self.enter(demand("filler", 1)) for _ in range(PLACES * len(self.names))]
        for visitor in visitors:
            self.begin(visitor)
        self.went.clear()
        return visitors
