"""What waits before the replicas: in which order it goes, who may wait, and how long."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from services.router.admission.service_rate import ServiceRate
from services.router.admission.tenant_weights import TenantWeights
from services.router.admission.waiting import Waiting
from services.router.admission.waiting_line import WaitingLine
from services.router.clock import Clock
from services.router.demand import LOCAL_TENANT, Demand, Lane
from services.shared.stream.generation import PriorityClass

PER_BATCH_TOKEN = 9
"""Interactive tokens for each one of batch while both wait; places are shared alike."""

_STRANGER = "\n"
"""Stands for a tenant that has nothing here."""


class FairQueue:
    """Interactive generations before those of batch, which get their share and what is left over.

    Args:
        clock: for the rate at which the fleet takes what waits.
        max_waiting: places.
        weights: tenants' shares against the others'.
    """

    def __init__(self, clock: Clock, max_waiting: int, weights: TenantWeights) -> None:
        self.max_waiting = max_waiting
        self._batch_places = max_waiting / (1 + PER_BATCH_TOKEN)
        self._interactive = WaitingLine(clock, weights)
        self._batch = WaitingLine(clock, weights)
        self._credit = 0
        self._rates = {lane: ServiceRate(clock) for lane in Lane}

    def __len__(self) -> int:
        return len(self._interactive) + len(self._batch)

    def waiting(self) -> dict[str, int]:
        """How many, by class."""
        return {"interactive": len(self._interactive), "batch": len(self._batch)}

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_waiting

    def tokens(self) -> int:
        """What all that wait are expected to cost."""
        return sum(sum(line.tokens.values()) for line in (self._interactive, self._batch))

    def waits_in(self, lane: Lane) -> bool:
        return self._interactive.waits_in(lane) or self._batch.waits_in(lane)

    def in_lane(self, lane: Lane) -> list[Waiting]:
        return [*self._interactive.in_lane(lane), *self._batch.in_lane(lane)]

    def holds_up(self, demand: Demand) -> bool:
        """Whether something waits in the lane of a newcomer that goes before it."""
        if demand.priority_class is PriorityClass.BATCH:
            return self.waits_in(demand.lane)
        owed = self._owed(self._batch.first())
        return self._interactive.waits_in(demand.lane) or (
            owed is not None and owed.demand.lane is demand.lane
        )

    def add(self, waiting: Waiting) -> None:
        lane = waiting.demand.lane
        if not self.waits_in(lane):
            self._rates[lane].wait()
        self._line(waiting).add(waiting)

    def remove(self, waiting: Waiting) -> None:
        lane = waiting.demand.lane
        self._line(waiting).remove(waiting)
        self._rest(lane)

    def first(self, closed: AbstractSet[Lane] = frozenset()) -> Waiting | None:
        """Who goes next through a lane that is not closed."""
        batch = self._batch.first(closed)
        return self._owed(batch) or self._interactive.first(closed) or batch

    def take(self, waiting: Waiting, closed: AbstractSet[Lane] = frozenset()) -> None:
        """The first goes."""
        lane = waiting.demand.lane
        self._account(waiting)
        self._rates[lane].serve(waiting.tokens)
        self._line(waiting).take(waiting, closed)
        self._rest(lane)

    def pass_by(self, newcomer: Waiting) -> None:
        """A newcomer goes without waiting: it takes nothing from any tenant, nor pays for it."""
        self._account(newcomer)
        self._rates[newcomer.demand.lane].serve(newcomer.tokens)

    def correct(self, demand: Demand, tokens: float) -> None:
        """One that was taken has cost so many tokens more than was charged, or fewer."""
        line = self._batch if demand.priority_class is PriorityClass.BATCH else self._interactive
        line.charge(demand.tenant, tokens)

    def displaceable_by(self, newcomer: Demand) -> Waiting | None:
        """Who has to leave a full queue for a newcomer; None if that is the newcomer.

        A class that has more than its share of the places gives one to the other; else the tenant
        with the most does, if it then has no fewer than the newcomer's tenant.
        """
        is_batch = newcomer.priority_class is PriorityClass.BATCH
        if not is_batch and len(self._batch) > self._batch_places:
            return self._batch.newest()
        if is_batch and len(self._batch) + 1 <= self._batch_places:
            return self._interactive.newest()
        line = self._batch if is_batch else self._interactive
        return line.displaceable_by(newcomer.tenant)

    def refuses_all(self) -> bool:
        """Whether a new interactive generation gets no place, whoever sends it.

        Where tenants are told apart, one that has nothing here yet may come.
        """
        if not self.is_full or len(self._batch) > self._batch_places:
            return False
        named = self._interactive.tenants() - {LOCAL_TENANT}
        newcomer = _STRANGER if named else LOCAL_TENANT
        return self._interactive.displaceable_by(newcomer) is None

    def expected_wait_s(
        self, newcomer: Waiting, returning: int = 0, watched_s: float = 0.0
    ) -> float | None:
        """Seconds until a newcomer goes, if nobody else comes; None while no rate is known.

        Args:
            newcomer: not in the queue.
            returning: tokens that go through its lane before all new ones.
            watched_s: how long something must have waited for the rate to count as known.
        """
        own_s = self._line(newcomer).own_wait_s(newcomer)
        if own_s is not None:
            return own_s
        rate = self._rates[newcomer.demand.lane].per_s(watched_s)
        if rate is None:
            return None
        return (returning + self._tokens_before(newcomer) + newcomer.tokens / 2) / rate

    def backlog_s(self, lane: Lane, returning: int) -> float:
        """Seconds until all interactive ones of a lane have gone; 0 while no rate is known."""
        rate = self._rates[lane].per_s()
        return (returning + self._interactive.tokens[lane]) / rate if rate else 0.0

    def _tokens_before(self, newcomer: Waiting) -> float:
        lane = newcomer.demand.lane
        own = self._line(newcomer).tokens_before(newcomer)
        if newcomer.demand.priority_class is PriorityClass.BATCH:
            return own + min(
                self._interactive.tokens[lane], (own + newcomer.tokens) * PER_BATCH_TOKEN
            )
        return own + min(self._batch.tokens[lane], own / PER_BATCH_TOKEN)

    def _line(self, waiting: Waiting) -> WaitingLine:
        is_batch = waiting.demand.priority_class is PriorityClass.BATCH
        return self._batch if is_batch else self._interactive

    def _owed(self, batch: Waiting | None) -> Waiting | None:
        """The next of batch, if as much is owed to it."""
        if batch is None or self._credit < PER_BATCH_TOKEN * batch.tokens:
            return None
        return batch

    def _account(self, waiting: Waiting) -> None:
        """Keeps the interactive tokens that count for batch: never more than its next needs."""
        batch = self._batch.first()
        if batch is None:
            self._credit = 0
        elif waiting.demand.priority_class is not PriorityClass.BATCH:
            enough = PER_BATCH_TOKEN * batch.tokens
            self._credit = min(self._credit + waiting.tokens, enough)
        elif self._owed(waiting):
            self._credit -= PER_BATCH_TOKEN * waiting.tokens

    def _rest(self, lane: Lane) -> None:
        if not self.waits_in(lane):
            self._rates[lane].rest()
