"""A prompt that one replica computes so that another one need not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from services.router.balancing.balancer import Decision
from services.router.demand import Demand
from services.router.relay.figures import PrefillEnd
from services.router.relay.leg import Leg
from services.router.relay.outcome import Destination, Entry
from services.router.relay.surroundings import Surroundings
from services.shared.errors import ServiceError
from services.shared.stream.events import Accepted, CancelReason, Event, Failed, Finished
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission


class Prefill:
    """Runs beside the leg that it is for, and ends with that one's first token at the latest.

    Whatever becomes of it costs time at most: who waits for the blocks computes what does not come.

    Args:
        leg: of the generation, at the replica that goes on from the prompt.
        decision: that the generation goes there, with the offer of a prefill.
        demand: of the generation.
        around: the router.
        entry: the record of the generation.
    """

    __slots__ = ("_around", "_for", "_is_over", "_leg")

    def __init__(
        self, leg: Leg, decision: Decision, demand: Demand, around: Surroundings, entry: Entry
    ) -> None:
        offer = decision.offer
        replica = around.fleet[offer.source or ""]
        there = Decision(
            replica=replica.name, reason=decision.reason, cached_tokens=offer.cached_tokens
        )
        prompt = replace(demand, output_tokens=0)
        self._around = around
        self._for = leg
        to = Destination(replica=replica.name, routed=decision.reason, is_prefill=True)
        self._leg = Leg(replica, there, prompt, around.clock.time(), entry.attempt(to))
        self._is_over = False
        leg.stop_prefill = self.stop

    def send(self, prompt: Generation) -> None:
        """Args: prompt: the generation without an output."""
        submission = Submission(prompt, self._leg.traceparent, self._receive)
        try:
            self._leg.cancel = self._leg.replica.session.submit(submission)
        except ServiceError as error:
            # On the next turn, as all that a replica says.
            clock = self._around.clock
            clock.call_at(clock.time(), partial(self._receive, Failed.of(error)))

    def stop(self, reason: CancelReason) -> None:
        """Nobody waits for it any more; what was computed stays cached."""
        if not self._is_over:
            self._end(PrefillEnd.STOPPED)
            self._leg.give_up(reason)

    def _receive(self, event: Event) -> None:
        if self._is_over:
            return
        if isinstance(event, Accepted):
            self._for.prefilled_from = event.cached_tokens.total
        elif isinstance(event, Finished):
            self._end(PrefillEnd.FINISHED)
            now = self._around.clock.time()
            self._leg.begin(now)
            self._leg.finish(now)
            self._around.admission.pump()
        elif isinstance(event, Failed):
            self._end(PrefillEnd.FAILED)
            self._leg.fail(self._around.clock.time(), event)
            self._for.lose_prefill()
            self._around.admission.pump()

    def _end(self, end: PrefillEnd) -> None:
        self._is_over = True
        self._around.figures.prefills[end] += 1
