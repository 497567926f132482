"""The way of one generation to one replica."""

from __future__ import annotations

from services.router.balancing.balancer import Decision
from services.router.demand import Demand
from services.router.fleet.replica import Replica
from services.router.relay.outcome import Attempt
from services.shared.stream.events import Cancel, CancelReason, Failed


class Leg:
    """Keeps a replica's counts while a generation is there, and tells how the replica did.

    What is known to be cached, here or where it is fetched from, is no work: it counts neither as
    pending nor as outstanding. What another replica is to compute counts when that one fails.

    Args:
        decision: that the generation goes there.
        now: when the generation is sent, on the router's clock.
        attempt: the record of it.

    Attributes:
        epoch: of the replica's session that carries it.
        version: model version of the replica.
        begun: whether a token has come.
        cancel: cancels the generation at the replica; set once it was sent.
        stop_prefill: ends what another replica computes for it; called when it has begun or ended.
        prefilled_from: the first token of its prompt that the other one computes; None while it
            computes nothing.
    """

    __slots__ = (
        "_attempt",
        "_awaited",
        "_lane",
        "_left",
        "_pending",
        "begun",
        "cancel",
        "epoch",
        "prefilled_from",
        "replica",
        "routed",
        "sent_at",
        "stop_prefill",
        "version",
    )

    def __init__(
        self,
        replica: Replica,
        decision: Decision,
        demand: Demand,
        now: float,
        attempt: Attempt,
    ) -> None:
        self.replica = replica
        self._attempt = attempt
        self.epoch = replica.epoch
        self.version = replica.identity.version if replica.identity else None
        self.routed = decision.reason
        self.sent_at = now
        self.begun = False
        self.cancel: Cancel = _nothing
        self.stop_prefill: Cancel = _nothing
        self.prefilled_from: int | None = None
        offer, found = decision.offer, decision.cached_tokens + decision.offer.tokens
        self._awaited = offer.tokens if offer.is_prefill else 0
        self._lane = demand.lane
        self._left = demand.tokens - found
        self._pending = demand.prompt_tokens - found
        replica.running += 1
        replica.outstanding_tokens += self._left
        replica.pending[self._lane] += self._pending
        replica.assigned += 1

    @property
    def traceparent(self) -> str:
        """The trace context for the replica."""
        return self._attempt.traceparent

    @property
    def place(self) -> tuple[str, int]:
        """Name and epoch of the replica."""
        return self.replica.name, self.epoch

    def begin(self, now: float) -> None:
        """The first token has come: the prompt is computed."""
        self.begun = True
        self.stop_prefill(CancelReason.UNSPECIFIED)
        self.replica.pending[self._lane] -= self._pending
        self.settle(self._pending)
        self._pending = 0
        self.replica.tell_first_token(now, now - self.sent_at)

    def settle(self, tokens: int) -> None:
        """So many tokens are computed or have come."""
        if tokens > self._left:  # noqa: PLR1730  # a call to min costs as much as all of this
            tokens = self._left
        self._left -= tokens
        self.replica.outstanding_tokens -= tokens

    def lose_prefill(self) -> None:
        """The other replica computes it not: it is computed here."""
        tokens, self._awaited = self._awaited, 0
        self._pending += tokens
        self._left += tokens
        self.replica.pending[self._lane] += tokens
        self.replica.outstanding_tokens += tokens

    def give_up(self, reason: CancelReason) -> None:
        """Nobody wants it from this replica any more."""
        self.stop_prefill(reason)
        self.cancel(reason)
        self.end(f"cancelled: {reason.name.lower()}")

    def finish(self, now: float) -> None:
        """The output came to its end."""
        self.end("finished")
        self.replica.tell_success(now)

    def fail(self, now: float, failed: Failed) -> None:
        """The replica failed the generation, or did not take it."""
        self.end(f"failed: {failed.code.name.lower()}")
        self.replica.tell_failure(now, failed)

    def end(self, end: str) -> None:
        """The generation is no longer there."""
        self._attempt.close(end)
        self.stop_prefill(CancelReason.UNSPECIFIED)
        self.replica.running -= 1
        self.replica.pending[self._lane] -= self._pending
        self._pending = 0
        self.settle(self._left)


def _nothing(_: CancelReason) -> None:
    return
