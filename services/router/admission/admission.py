"""Who goes to a replica when: the one place where generations wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from services.router.admission.absences import Absences
from services.router.admission.admission_rules import AdmissionRules
from services.router.admission.fair_queue import FairQueue
from services.router.admission.returning_line import Kind, ReturningLine
from services.router.admission.tenant_weights import TenantWeights
from services.router.admission.waiting import Applicant, Waiting
from services.router.admission.waiting_limit import Refusal, WaitingLimit
from services.router.balancing.balancer import Balancer, Decision
from services.router.balancing.candidate import Snapshot
from services.router.clock import Clock
from services.router.demand import Demand, Lane
from services.router.fleet.fleet import Fleet
from services.router.total_load import QueueLoad
from services.shared.errors import ServiceError, Unavailable


class Admission:
    """Gives places at replicas: to those that lost one first, then as the fair queue has it.

    A new generation that no replica could take is refused at once. What waits is kept while
    replicas go and come again. The first in the order that finds no room closes its lane for all
    behind it, so that large prompts are not overtaken for ever, and the other lane goes on.

    Args:
        fleet: where the places are.
        clock: for waits.
        random: numbers from 0 to 1, for jitter.
        rules: bounds of waiting.
        balancer: chooses among the places.
    """

    def __init__(
        self,
        fleet: Fleet,
        clock: Clock,
        random: Callable[[], float],
        rules: AdmissionRules | None = None,
        balancer: Balancer | None = None,
    ) -> None:
        rules = rules or AdmissionRules()
        self._fleet = fleet
        self._balancer = balancer or Balancer()
        self._weights = TenantWeights(rules.tenant_weights)
        self._queue = FairQueue(clock, rules.max_waiting, self._weights)
        self._limit = WaitingLimit(self._queue, clock, random)
        self._waiting: dict[Applicant, Waiting] = {}
        self._charged: dict[Applicant, Waiting] = {}
        self._returning = ReturningLine()
        self._absences = Absences(clock, rules.wait_for_replica_s, self._give_up)
        self._pumping = False
        self._stale = False

    @property
    def waiting(self) -> int:
        return len(self._queue) + len(self._returning)

    @property
    def refusals(self) -> Mapping[Refusal, int]:
        """Those that might not wait, since the start."""
        return self._limit.refusals

    def waiting_by_class(self) -> dict[str, int]:
        """What waits now; those that had a place before are a class of their own."""
        return {**self._queue.waiting(), "returning": len(self._returning)}

    def load(self) -> QueueLoad:
        """What waits now."""
        returning = self._returning.tokens
        wait_s = self._queue.backlog_s(Lane.SHORT, returning[Lane.SHORT])
        return QueueLoad(
            waiting=self.waiting,
            tokens=self._queue.tokens() + sum(returning.values()),
            expected_wait_ms=round(1000 * wait_s),
            refusing=len(self._queue) > 0 and self._queue.refuses_all(),
        )

    def enter(self, applicant: Applicant) -> None:
        """A new generation; it may `go` before this returns.

        A deadline that comes before the expected start is refused like a full queue is, with
        RESOURCE_EXHAUSTED: its time is not over yet, and elsewhere or later it may well be served.

        Raises:
            ServiceError: it is not taken; the applicant hears nothing more.
        """
        newcomer = Waiting.of(applicant)
        self._weights.hear(newcomer.demand.tenant, newcomer.demand.weight)
        if newcomer.demand.avoid:
            self._enter_again(newcomer)
            return
        held_up = self._queue.holds_up(newcomer.demand)
        decision = None if held_up else self._place_spare(newcomer.demand)
        if decision is not None:
            self._queue.pass_by(newcomer)
            applicant.go(decision)
            return
        returning = self._returning.tokens[newcomer.demand.lane]
        displaced = self._limit.make_way(newcomer, returning)
        if held_up:
            self._balancer.select(newcomer.demand, self._fleet.snapshot(newcomer.demand))
        if displaced is not None:
            self._withdraw(displaced.applicant)
        self._waiting[applicant] = newcomer
        self._queue.add(newcomer)
        if held_up and self._is_next(newcomer):
            self.pump()
        if displaced is not None:
            displaced.applicant.refuse(self._limit.displaced(displaced, returning))

    def _enter_again(self, newcomer: Waiting) -> None:
        """One that a replica refused has had its turn: it waits for the others as who returns."""
        demand, applicant = newcomer.demand, newcomer.applicant
        decision = self._balancer.place(demand, self._fleet.snapshot(demand))
        if decision is not None:
            applicant.go(decision)
        elif self.waiting >= self._queue.max_waiting:
            raise self._limit.full(newcomer, self._returning.tokens[demand.lane])
        else:
            self._returning.add(Kind.of(demand), applicant)

    def resume(self, applicant: Applicant) -> None:
        """One that had a place and lost it: it goes before all new ones and is never too many.

        Raises:
            ServiceError: no place can be had.
        """
        demand = applicant.demand
        kind = Kind.of(demand)
        if self._returning.first(kind) is None:
            outcome = self._place_kept(kind, demand, self._fleet.snapshot(demand))
            if isinstance(outcome, Decision):
                applicant.go(outcome)
                return
            if isinstance(outcome, ServiceError) and not self._is_awaited(outcome):
                raise outcome
        self._returning.add(kind, applicant)

    def leave(self, applicant: Applicant) -> None:
        """It wants no place any more; does nothing when it does not wait."""
        waiting = self._waiting.get(applicant)
        blocked_others = waiting is None or self._is_next(waiting)
        if self._withdraw(applicant) and blocked_others:
            self.pump()

    def settle(self, applicant: Applicant, cost: int) -> None:
        """One that went has ended, after so many tokens; its tenant is charged for these."""
        charged = self._charged.pop(applicant, None)
        if charged is not None:
            self._queue.correct(charged.demand, cost - charged.tokens)

    def _charge(self, waiting: Waiting, decision: Decision) -> None:
        """What is known to be cached where it goes costs nothing."""
        self._queue.correct(waiting.demand, -decision.cached_tokens)
        charged = replace(waiting, tokens=waiting.tokens - decision.cached_tokens)
        self._charged[waiting.applicant] = charged

    def pump(self) -> None:
        """Places may have become free: lets those go that have one."""
        self._stale = True
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._stale and self.waiting:
                self._stale = False
                self._serve()
        finally:
            self._pumping = False

    def _serve(self) -> None:
        for kind in self._returning.kinds():
            self._serve_returning(kind)
        closed: set[Lane] = set()
        while (waiting := self._queue.first(closed)) is not None:
            self._serve_new(waiting, closed)

    def _serve_returning(self, kind: Kind) -> None:
        while (applicant := self._returning.first(kind)) is not None:
            demand = applicant.demand
            outcome = self._place_kept(kind, demand, self._fleet.snapshot(demand))
            if outcome is None or self._is_awaited(outcome):
                return
            self._withdraw(applicant)
            _tell(applicant, outcome)

    def _serve_new(self, waiting: Waiting, closed: set[Lane]) -> None:
        lane = waiting.demand.lane
        if self._fleet.is_full(waiting.demand):  # asked for each place that becomes free
            self._absences.end(Kind(lane))
            closed.add(lane)
            return
        outcome = self._place_kept(Kind(lane), waiting.demand, self._spare(waiting.demand))
        if outcome is None or self._is_awaited(outcome):
            closed.add(lane)
            return
        if isinstance(outcome, Decision):
            del self._waiting[waiting.applicant]
            self._queue.take(waiting, closed)
            self._charge(waiting, outcome)
        else:
            self._withdraw(waiting.applicant)
        _tell(waiting.applicant, outcome)

    def _is_next(self, waiting: Waiting) -> bool:
        others = {lane for lane in Lane if lane is not waiting.demand.lane}
        return self._queue.first(others) is waiting

    def _place_spare(self, demand: Demand) -> Decision | None:
        return self._balancer.place(demand, self._spare(demand))

    def _spare(self, demand: Demand) -> Snapshot:
        """The fleet for a new one: what those that return wait for has no room for it."""
        fleet = self._fleet.snapshot(demand)
        ahead = [
            kind
            for kind in self._returning.kinds()
            if kind.lane is demand.lane and kind not in self._absences
        ]
        if not ahead:
            return fleet
        candidates = [
            replace(one, has_room=False) if any(kind.suits(one) for kind in ahead) else one
            for one in fleet.candidates
        ]
        return replace(fleet, candidates=candidates)

    def _place_kept(
        self, kind: Kind, demand: Demand, fleet: Snapshot
    ) -> Decision | ServiceError | None:
        """As `place`, for one that is kept while no replica could take it."""
        try:
            decision = self._balancer.place(demand, fleet)
        except ServiceError as error:
            if self._is_awaited(error):
                self._absences.begin(kind)
            return error
        self._absences.end(kind)
        return decision

    def _is_awaited(self, outcome: Decision | ServiceError) -> bool:
        """Whether a replica is waited for that may come."""
        return isinstance(outcome, Unavailable) and self._absences.wait_s > 0

    def _give_up(self, kind: Kind) -> None:
        """No replica has come in time."""
        kept = self._returning.of(kind)
        if kind == Kind(kind.lane):
            kept += [waiting.applicant for waiting in self._queue.in_lane(kind.lane)]
        reason = self._why_none(kept[0].demand) if kept else None
        if reason is not None:
            error = Unavailable(f"{reason}; waited {self._absences.wait_s:g} s for one")
            for applicant in kept:
                if self._withdraw(applicant):
                    applicant.refuse(error)
        self.pump()

    def _why_none(self, demand: Demand) -> str | None:
        try:
            self._balancer.select(demand, self._fleet.snapshot(demand))
        except Unavailable as error:
            return error.message
        except ServiceError:
            pass
        return None

    def _withdraw(self, applicant: Applicant) -> bool:
        """Takes it from where it waits; False if it does not."""
        waiting = self._waiting.pop(applicant, None)
        if waiting is not None:
            self._queue.remove(waiting)
            kind = Kind(waiting.demand.lane)
        elif applicant in self._returning:
            kind = self._returning.remove(applicant)
        else:
            return False
        if self._returning.first(kind) is None and not self._queue.waits_in(kind.lane):
            self._absences.end(kind)
        return True


def _tell(applicant: Applicant, outcome: Decision | ServiceError) -> None:
    if isinstance(outcome, Decision):
        applicant.go(outcome)
    else:
        applicant.refuse(outcome)
