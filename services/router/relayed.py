"""One generation on its way through the router."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from services.router.admission import Admission
from services.router.balancer import Decision
from services.router.clock import Clock, Timer
from services.router.demand import Demand, demand_of
from services.router.fleet import Fleet
from services.router.leg import Leg
from services.router.outcome import Journal, Outcome
from services.shared.errors import Code, Overloaded, ServiceError, Unavailable
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CancelReason,
    Event,
    Failed,
    Finished,
    Tokens,
)
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission

MAX_FRUITLESS = 3
"""Replicas in a row that may fail a generation without bringing a token."""

LONG_PROMPT_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a relayed generation uses; `on_end` is told when it has ended."""

    fleet: Fleet
    admission: Admission
    clock: Clock
    journal: Journal
    on_end: Callable[[Relayed], None]


class Relayed:
    """Carries the events of a generation to the caller, from one replica after another if need be.

    It knows all that is needed to go on elsewhere: the tokens delivered, the seed that was told,
    the model version, and the time left. So the caller sees one output without gap or repetition.

    Attributes:
        demand: what is asked of the fleet, as of the last time it was sent or began to wait.
        deadline: on the router's clock; None without one.
    """

    __slots__ = (
        "_accepted",
        "_around",
        "_avoid",
        "_continuations",
        "_delivered",
        "_entry",
        "_generation",
        "_last",
        "_leg",
        "_sink",
        "_timer",
        "_version",
        "deadline",
        "demand",
    )

    def __init__(self, submission: Submission, around: Surroundings) -> None:
        self._around = around
        self._generation = submission.generation
        self._sink = submission.sink
        self._entry = around.journal.open(submission.generation, submission.traceparent)
        self._accepted: Accepted | None = None
        self._version: str | None = None
        self._delivered = array("I")
        self._continuations = 0
        self._avoid: frozenset[tuple[str, int]] = frozenset()
        self._leg: Leg | None = None
        self._last: Leg | None = None
        self._timer: Timer | None = None
        self.deadline: float | None = None
        timeout_ms = submission.generation.quality_of_service.timeout_ms
        if timeout_ms is not None:
            self.deadline = around.clock.time() + timeout_ms / 1000
        self.demand: Demand = demand_of(submission.generation, LONG_PROMPT_TOKENS)

    @property
    def replica(self) -> str | None:
        """Where it is now; None while it waits for a place."""
        return self._leg.replica.name if self._leg else None

    def start(self) -> None:
        """Asks for a place.

        Raises:
            ServiceError: it gets none; the caller hears nothing more of it.
        """
        if self.deadline is not None:
            self._timer = self._around.clock.call_at(self.deadline, self._expire)
        try:
            self._around.admission.enter(self)
        except ServiceError as error:
            self._end(f"failed: {error.code.name.lower()}", error.message)
            raise

    def go(self, decision: Decision) -> None:
        """Sends what is left of the generation to the chosen replica."""
        replica = self._around.fleet[decision.replica]
        leg = self._leg = self._last = Leg(replica, decision.reason, self.demand)
        submission = Submission(
            self._remaining(), self._entry.traceparent, partial(self._receive, leg)
        )
        try:
            leg.cancel = replica.session.submit(submission)
        except (Unavailable, Overloaded) as error:
            # On the next turn: the caller may not have heard yet that the generation was taken.
            clock = self._around.clock
            clock.call_at(clock.time(), partial(self._receive, leg, Failed.of(error)))

    def refuse(self, error: ServiceError) -> None:
        """The generation gets no place."""
        self._fail(Failed.of(error))

    def move(self) -> None:
        """Goes on at another replica; the one that has it takes no part any more."""
        if self._leg is not None:
            self._leg.cancel(CancelReason.MOVED)
            self._leave_replica()
            self._go_on(Failed(code=Code.UNAVAILABLE, message="the replica is leaving"))

    def cancel(self, reason: CancelReason) -> None:
        """The caller wants no more; after the end this does nothing."""
        if self._withdraw(reason):
            self._end(f"cancelled: {reason.name.lower()}")

    def break_off(self, failed: Failed) -> None:
        """Cancels the generation at its replica and tells the caller why."""
        expired = failed.code is Code.DEADLINE_EXCEEDED
        if self._withdraw(CancelReason.DEADLINE if expired else CancelReason.UNSPECIFIED):
            self._fail(failed)

    def _expire(self) -> None:
        timeout_ms = self._generation.quality_of_service.timeout_ms
        message = f"{timeout_ms} ms are over after {len(self._delivered)} tokens"
        self.break_off(Failed(code=Code.DEADLINE_EXCEEDED, message=message))

    def _remaining(self) -> Generation:
        """The generation from here on: nothing is generated or drawn twice."""
        generation = self._generation
        if self._accepted is not None:
            sampling = replace(generation.sampling, seed=self._accepted.seed)
            delivered = [*generation.generated_ids, *self._delivered]
            generation = replace(generation, sampling=sampling, generated_ids=delivered)
        if self.deadline is not None:
            left_ms = max(1, int((self.deadline - self._around.clock.time()) * 1000))
            quality = replace(generation.quality_of_service, timeout_ms=left_ms)
            generation = replace(generation, quality_of_service=quality)
        return generation

    def _receive(self, leg: Leg, event: Event) -> None:
        if leg is not self._leg:  # it was given up
            return
        if isinstance(event, Tokens):
            if not leg.begun:
                leg.begin()
            leg.settle(len(event.ids))
            self._delivered.fromlist(event.ids)
            self._sink(event)
        elif isinstance(event, Finished):
            self._finish(event)
        elif isinstance(event, Failed):
            self._lost(leg, event)
        elif self._accepted is None:
            self._accepted = event
            self._version = leg.version
            self._sink(replace(event, routed="; ".join(filter(None, (leg.routed, event.routed)))))

    def _finish(self, event: Finished) -> None:
        """The caller is told the figures of one generation, wherever it went."""
        if self._continuations and self._accepted is not None:
            usage = replace(event.usage, cached_tokens=_total(self._accepted.cached_tokens))
            continuations = self._continuations + event.timeline.continuations
            timeline = replace(event.timeline, continuations=continuations)
            event = replace(event, usage=usage, timeline=timeline)
        sink = self._sink
        self._end(event.reason.name.lower())
        sink(event)

    def _lost(self, leg: Leg, failed: Failed) -> None:
        self._leave_replica()
        if not failed.retryable or len(self._avoid) >= MAX_FRUITLESS:
            self._fail(failed)
        else:
            self._go_on(failed)

    def _leave_replica(self) -> None:
        leg, self._leg = self._leg, None
        if leg is not None:
            leg.end()
            self._avoid = (frozenset() if leg.begun else self._avoid) | {leg.place}

    def _go_on(self, failed: Failed) -> None:
        """Asks for another place; where none can be had, the caller is told why this was needed."""
        self._continuations += 1
        self.demand = demand_of(self._remaining(), LONG_PROMPT_TOKENS, self._version, self._avoid)
        try:
            self._around.admission.resume(self)
        except ServiceError as error:
            self._fail(replace(failed, message=f"{failed.message}; {error.message}"))

    def _withdraw(self, reason: CancelReason) -> bool:
        """Takes it from wherever it is; False when it has ended."""
        if self._sink is _ended:
            return False
        if self._leg is not None:
            self._leg.cancel(reason)
        else:
            self._around.admission.leave(self)
        return True

    def _fail(self, failed: Failed) -> None:
        sink = self._sink
        self._end(f"failed: {failed.code.name.lower()}", failed.message)
        sink(failed)

    def _end(self, end: str, error: str | None = None) -> None:
        self._sink = _ended
        leg, self._leg = self._leg, None
        if self._timer is not None:
            self._timer.cancel()
        if leg is not None:
            leg.end()
        last = self._last
        self._entry.close(
            Outcome(
                end=end,
                error=error,
                replica=last.replica.name if last else "",
                routed=last.routed if last else "",
                attempts=self._continuations + (last is not None),
                output_ids=self._delivered,
            )
        )
        self._around.on_end(self)


def _total(cached: CachedTokens) -> int:
    return cached.device + cached.host + cached.peer + cached.service


def _ended(_: Event) -> None:
    """Where events go after the end."""
