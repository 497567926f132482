"""One generation on its way through the router."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from services.router.balancer import choose
from services.router.fleet import Fleet
from services.router.leg import Leg, expected_tokens
from services.router.outcome import Journal, Outcome
from services.shared.errors import Code, Overloaded, ServiceError, Unavailable
from services.shared.stream.events import (
    Accepted,
    CancelReason,
    Event,
    Failed,
    Finished,
    Tokens,
)
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission

MAX_ATTEMPTS = 3


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """Seconds that only go forward, and calls at one of them; an event loop is one."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a relayed generation uses; `on_end` is told when it has ended."""

    fleet: Fleet
    clock: Clock
    journal: Journal
    on_end: Callable[[Relayed], None]


class Relayed:
    """Carries the events of a generation from a replica to the caller.

    It knows all that is needed to go on elsewhere: the tokens delivered, the seed that was told,
    and the time left. A generation whose replica fails before the first token is sent to another.
    """

    __slots__ = (
        "_accepted",
        "_around",
        "_deadline",
        "_delivered",
        "_entry",
        "_generation",
        "_leg",
        "_sink",
        "_timer",
        "_tried",
    )

    def __init__(self, submission: Submission, around: Surroundings) -> None:
        self._around = around
        self._generation = submission.generation
        self._sink = submission.sink
        self._entry = around.journal.open(submission.generation, submission.traceparent)
        self._accepted: Accepted | None = None
        self._delivered = array("I")
        self._leg: Leg | None = None
        self._tried: list[str] = []
        self._deadline: float | None = None
        self._timer: Timer | None = None

    def start(self) -> None:
        """Sends the generation to a replica.

        Raises:
            ServiceError: none takes it; the caller hears nothing more of it.
        """
        timeout_ms = self._generation.quality_of_service.timeout_ms
        if timeout_ms is not None:
            self._deadline = self._around.clock.time() + timeout_ms / 1000
            self._timer = self._around.clock.call_at(self._deadline, self._expire)
        try:
            self._send()
        except ServiceError as error:
            self._end(f"failed: {error.code.name.lower()}", error.message)
            raise

    def cancel(self, reason: CancelReason) -> None:
        """The caller wants no more; after the end this does nothing."""
        if self._leg is not None:
            self._leg.cancel(reason)
            self._end(f"cancelled: {reason.name.lower()}")

    def break_off(self, failed: Failed) -> None:
        """Cancels the generation at its replica and tells the caller why."""
        if self._leg is not None:
            expired = failed.code is Code.DEADLINE_EXCEEDED
            self._leg.cancel(CancelReason.DEADLINE if expired else CancelReason.UNSPECIFIED)
            self._fail(failed)

    def _expire(self) -> None:
        timeout_ms = self._generation.quality_of_service.timeout_ms
        message = f"{timeout_ms} ms are over after {len(self._delivered)} tokens"
        self.break_off(Failed(code=Code.DEADLINE_EXCEEDED, message=message))

    def _send(self) -> None:
        generation = self._remaining()
        while True:
            decision = choose(generation.model, self._around.fleet.snapshot(), self._tried)
            replica = self._around.fleet[decision.replica]
            self._tried.append(replica.name)
            leg = Leg(replica, decision.reason, expected_tokens(generation))
            sink = partial(self._receive, leg)
            self._leg = leg
            try:
                leg.cancel = replica.session.submit(
                    Submission(generation, self._entry.traceparent, sink)
                )
            except (Unavailable, Overloaded):
                leg.end()
            else:
                return

    def _remaining(self) -> Generation:
        """The generation from here on: nothing is generated or drawn twice."""
        generation = self._generation
        if self._accepted is not None:
            sampling = replace(generation.sampling, seed=self._accepted.seed)
            delivered = [*generation.generated_ids, *self._delivered]
            generation = replace(generation, sampling=sampling, generated_ids=delivered)
        if self._deadline is not None:
            left_ms = max(1, int((self._deadline - self._around.clock.time()) * 1000))
            quality = replace(generation.quality_of_service, timeout_ms=left_ms)
            generation = replace(generation, quality_of_service=quality)
        return generation

    def _receive(self, leg: Leg, event: Event) -> None:
        if leg is not self._leg:  # it was given up
            return
        if isinstance(event, Tokens):
            if not self._delivered:
                leg.settle(len(self._generation.prompt_ids))
            leg.settle(len(event.ids))
            self._delivered.fromlist(event.ids)
            self._sink(event)
        elif isinstance(event, Finished):
            self._end(event.reason.name.lower())
            self._sink(event)
        elif isinstance(event, Failed):
            self._lost(leg, event)
        elif self._accepted is None:
            self._accepted = event
            self._sink(event)

    def _lost(self, leg: Leg, failed: Failed) -> None:
        if not failed.retryable:
            self._fail(failed)
        elif self._delivered:
            message = f"the replica was lost after {len(self._delivered)} tokens"
            self._fail(Failed(code=Code.UNAVAILABLE, message=message))
        elif len(self._tried) >= MAX_ATTEMPTS:
            self._fail(failed)
        else:
            leg.end()
            try:
                self._send()
            except ServiceError as error:
                self._fail(replace(failed, message=f"{failed.message}; {error.message}"))

    def _fail(self, failed: Failed) -> None:
        self._end(f"failed: {failed.code.name.lower()}", failed.message)
        self._sink(failed)

    def _end(self, end: str, error: str | None = None) -> None:
        leg, self._leg = self._leg, None
        if self._timer is not None:
            self._timer.cancel()
        if leg is not None:
            leg.end()
        self._entry.close(
            Outcome(
                end=end,
                error=error,
                replica=leg.replica.name if leg else "",
                routed=leg.routed if leg else "",
                attempts=len(self._tried),
                output_ids=self._delivered,
            )
        )
        self._around.on_end(self)
