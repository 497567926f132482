"""One generation on its way through the router."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from services.router.balancing.balancer import Decision
from services.router.demand import Demand, demand_of
from services.router.relay.deadline import Deadline
from services.router.relay.delivery import Delivery
from services.router.relay.giving_up import given_up, without_place
from services.router.relay.leg import Leg
from services.router.relay.outcome import Destination, Outcome
from services.router.relay.prefill import Prefill
from services.router.relay.setbacks import Setbacks
from services.router.relay.surroundings import Surroundings
from services.shared.errors import Code, ServiceError
from services.shared.stream.events import CancelReason, Event, Failed, Finished, Tokens
from services.shared.stream.source import Submission

MAX_FRUITLESS = 3
"""Replicas in a row that may fail a generation without bringing a token."""


class Relayed:
    """Carries the events of a generation to the caller, from one replica after another if need be.

    It knows all that is needed to go on elsewhere: the tokens delivered, the seed that was told,
    the model version, and the time left. So the caller sees one output without gap or repetition.

    Args:
        on_end: called when it has ended.

    Attributes:
        demand: what is asked of the fleet, as of the last time it asked for a place.
        deadline: on the router's clock; None without one.
    """

    __slots__ = (
        "_around",
        "_continuations",
        "_delivery",
        "_entry",
        "_ids",
        "_last",
        "_leg",
        "_legs",
        "_moving",
        "_on_end",
        "_setbacks",
        "_sink",
        "_until",
        "deadline",
        "demand",
    )

    def __init__(
        self, submission: Submission, around: Surroundings, on_end: Callable[[Relayed], None]
    ) -> None:
        generation, now = submission.generation, around.clock.time()
        self._around = around
        self._on_end = on_end
        self._sink = submission.sink
        self._entry = around.journal.open(generation, submission.traceparent)
        self._delivery = Delivery(generation, now)
        self._ids = self._delivery.ids
        self._legs = self._continuations = 0
        self._setbacks = Setbacks(around.figures)
        self._leg: Leg | None = None
        self._last: Leg | None = None
        self._moving = False
        self._until = Deadline(generation.quality_of_service.timeout_ms, around.clock)
        self.deadline = self._until.at
        self.demand: Demand = demand_of(generation, around.fleet.rules.long_prompt_tokens)

    @property
    def replica(self) -> str | None:
        """Where it is now; None while it waits for a place."""
        return self._leg.replica.name if self._leg else None

    def start(self) -> None:
        """Asks for a place; what another router has begun is not new.

        Raises:
            ServiceError: it gets none; the caller hears nothing more of it.
        """
        admission = self._around.admission
        try:
            (admission.resume if self.demand.continued else admission.enter)(self)
        except ServiceError as error:
            self._end(f"failed: {error.code.name.lower()}", error.message)
            raise
        self._await_place()
        self._around.budget.earn()
        self._until.watch(self._expire)

    def go(self, decision: Decision) -> None:
        """Sends what is left of the generation to the chosen replica."""
        clock, replica = self._around.clock, self._around.fleet[decision.replica]
        if self._leg is not None:
            self._leg.give_up(CancelReason.MOVED)
            self._setbacks.left(self._leg)
            self._ask(self.demand.avoid)  # tokens came while it waited for the place
            decision = self._around.fleet.renewed(decision, self.demand)
        self._moving = False
        self._count_leg()
        attempt = self._entry.attempt(Destination(replica=replica.name, routed=decision.reason))
        leg = Leg(replica, decision, self.demand, clock.time(), attempt)
        self._leg = self._last = leg
        sink = partial(self._receive, leg)
        left_ms = self._until.left_ms()
        if decision.prefill is not None:
            prompt = self._delivery.prompt(left_ms, leg.version, decision.offer.behind)
            Prefill(leg, decision, self.demand, self._around, self._entry).send(prompt)
        rest = self._delivery.rest(left_ms, leg.version, decision.offer)
        try:
            leg.cancel = replica.session.submit(Submission(rest, leg.traceparent, sink))
        except ServiceError as error:
            # On the next turn: the caller may not have heard yet that the generation was taken.
            clock.call_at(clock.time(), partial(sink, Failed.of(error)))

    def _count_leg(self) -> None:
        is_continuation = self._delivery.accepted is not None
        self._legs += 1
        self._continuations += is_continuation
        waited_s = self._around.clock.time() - self._delivery.began_at
        self._around.figures.leg(self._setbacks.leg_cause, waited_s, again=is_continuation)

    def refuse(self, error: ServiceError) -> None:
        """The generation gets no place; one that was to move stays where it is."""
        self._moving = False
        if self._leg is None:
            self._fail(without_place(self._setbacks.cause, error))

    def move(self) -> None:
        """Goes on at another replica as soon as one has a place; it stays where it is till then."""
        leg = self._leg
        if leg is None or self._moving:
            return
        self._moving = True
        try:
            self._resume(self._setbacks.avoiding(leg))
        except ServiceError:
            self._moving = False

    def _stay(self) -> None:
        if self._moving:
            self._moving = False
            self._around.admission.leave(self)

    def cancel(self, reason: CancelReason) -> None:
        """The caller wants no more; after the end this does nothing."""
        if self._sink is not _ended:
            self._withdraw(reason)
            self._end(f"cancelled: {reason.name.lower()}")
            self._around.admission.pump()

    def break_off(self, failed: Failed) -> None:
        """Cancels the generation at its replica and tells the caller why."""
        if self._sink is not _ended:
            late = failed.code is Code.DEADLINE_EXCEEDED
            self._withdraw(CancelReason.DEADLINE if late else CancelReason.UNSPECIFIED)
            self._fail(failed)
            self._around.admission.pump()

    def _expire(self) -> None:
        message = f"{self._until.timeout_ms} ms are over after {len(self._ids)} tokens"
        self.break_off(Failed(code=Code.DEADLINE_EXCEEDED, message=message))

    def _receive(self, leg: Leg, event: Event) -> None:
        if leg is not self._leg:  # it was given up
            return
        if isinstance(event, Tokens):
            self._ids.fromlist(event.ids)
            self._around.figures.relayed_tokens += len(event.ids)
            self._sink(event)
            if leg.begun:
                leg.settle(len(event.ids))
            else:
                self._begin(leg, len(event.ids))
        elif isinstance(event, Finished):
            self._finish(leg, event)
        elif isinstance(event, Failed):
            self._lose(leg, event)
        elif self._delivery.accepted is None:
            now = self._around.clock.time()
            self._delivery.accept(event, leg.version, leg.sent_at, now, leg.prefilled_from)
            self._sink(replace(event, routed="; ".join(filter(None, (leg.routed, event.routed)))))
            if self._moving:  # from now on its version counts
                self._stay()
                self.move()

    def _begin(self, leg: Leg, tokens: int) -> None:
        """The first tokens of a leg were delivered; from now on it may move elsewhere."""
        now = self._around.clock.time()
        if len(self._ids) == tokens:
            self._delivery.begin(now)
        leg.begin(now)
        leg.settle(tokens)
        self._around.admission.pump()  # its prompt holds up no other any more

    def _finish(self, leg: Leg, event: Finished) -> None:
        now = self._around.clock.time()
        if self._continuations:
            event = self._delivery.whole(event, now, self._continuations)
        else:
            event = self._delivery.queued(event)
        self._stay()
        self._leg = None
        leg.finish(now)
        sink = self._sink
        self._end(event.reason.name.lower())
        sink(event)
        self._around.admission.pump()

    def _lose(self, leg: Leg, failed: Failed) -> None:
        """The replica brings no more: another one goes on, if that may help."""
        self._stay()
        self._leg = None
        leg.fail(self._around.clock.time(), failed)
        cause = self._setbacks.lost(leg, failed)
        if not failed.retryable:
            self._fail(failed)
        elif self._setbacks.fruitless >= MAX_FRUITLESS:
            self._fail(given_up(cause, f"{MAX_FRUITLESS} replicas in a row brought no token"))
        elif not self._around.budget.spend():
            self._fail(given_up(cause, "the retry budget is used up"))
        else:
            self._go_on(full=failed.code is Code.RESOURCE_EXHAUSTED)
        self._around.admission.pump()

    def _go_on(self, *, full: bool) -> None:
        try:
            if full and self._delivery.accepted is None:
                self._enter_again()
            else:
                self._resume(self._setbacks.avoid)
        except ServiceError as error:
            self._fail(without_place(self._setbacks.cause, error))
        self._await_place()

    def _await_place(self) -> None:
        """Notes that it waits for a place, if it does."""
        if self._leg is None and self._sink is not _ended:
            self._entry.wait()

    def _enter_again(self) -> None:
        """No replica has taken it yet, so it is new: where all are full, its caller is told."""
        self._around.admission.settle(self, 0)
        self._ask(self._setbacks.avoid)
        self._around.admission.enter(self)

    def _resume(self, avoid: frozenset[tuple[str, int]]) -> None:
        self._ask(avoid)
        self._around.admission.resume(self)

    def _ask(self, avoid: frozenset[tuple[str, int]]) -> None:
        rest = self._delivery.rest(self._until.left_ms())
        long = self._around.fleet.rules.long_prompt_tokens
        self.demand = demand_of(rest, long, self._delivery.version, avoid)

    def _withdraw(self, reason: CancelReason) -> None:
        """Takes it from wherever it is."""
        leg, self._leg = self._leg, None
        if leg is not None:
            leg.give_up(reason)
        if leg is None or self._moving:
            self._around.admission.leave(self)

    def _fail(self, failed: Failed) -> None:
        sink = self._sink
        self._end(f"failed: {failed.code.name.lower()}", failed.message)
        sink(failed)

    def _end(self, end: str, error: str | None = None) -> None:
        self._sink = _ended
        self._until.forget()
        self._around.figures.end(end, had_place=self._legs > 0)
        if self._legs:
            self._around.admission.settle(self, self._delivery.cost())
        last = self._last
        self._entry.close(
            Outcome(
                end=end,
                error=error,
                replica=last.replica.name if last else "",
                routed=last.routed if last else "",
                attempts=self._legs,
                setback=self._setbacks.cause.message if self._setbacks.cause else None,
                output_ids=self._ids,
            )
        )
        self._on_end(self)


def _ended(_: Event) -> None:
    """Where events go after the end."""
