"""What the caller of a generation has been told, and what is left to ask a replica for."""

from __future__ import annotations

from array import array
from dataclasses import replace

from services.router.balancing.offer import NO_OFFER, Offer
from services.shared.stream.events import Accepted, Finished, Timeline
from services.shared.stream.generation import Generation, Output, Sampling, Stopping


class Delivery:
    """One output, whichever replicas it comes from. Times are on the router's clock.

    Attributes:
        began_at: when it came.
        ids: the tokens that were delivered, without those that the caller knew before.
        accepted: as the caller was told; None until then.
        version: the model version of its tokens; None until it was accepted.
    """

    __slots__ = (
        "_accepted_at",
        "_first_at",
        "_generation",
        "_prefilled",
        "_sent_at",
        "accepted",
        "began_at",
        "ids",
        "version",
    )

    def __init__(self, generation: Generation, now: float) -> None:
        self._generation = generation
        self.began_at = now
        self._sent_at = self._accepted_at = self._first_at = now
        self.ids = array("I")
        self.accepted: Accepted | None = None
        self.version: str | None = None
        self._prefilled = 0

    def accept(
        self,
        event: Accepted,
        version: str | None,
        sent_at: float,
        now: float,
        prefilled_from: int | None = None,
    ) -> None:
        """The caller is told that the generation was taken.

        Args:
            event: the replica's.
            version: of the replica's model.
            sent_at: when the generation was sent there.
            now: on the same clock.
            prefilled_from: the first token of the prompt that another replica computed for it.
        """
        if prefilled_from is not None:
            fetched_from = event.cached_tokens.device + event.cached_tokens.host
            until = fetched_from + event.cached_tokens.peer
            self._prefilled = max(0, until - max(fetched_from, prefilled_from))
        self.accepted = event
        self.version = version
        self._sent_at = sent_at
        self._accepted_at = self._first_at = now

    def begin(self, now: float) -> None:
        """The first token has come."""
        self._first_at = now

    def cost(self) -> int:
        """Tokens that one undisturbed replica would have computed and drawn by now.

        What another one computed for it is among them.
        """
        if self.accepted is None:
            return 0
        cached = self.accepted.cached_tokens.total - self._prefilled
        return self.accepted.prompt_tokens - cached + len(self.ids)

    def rest(
        self, left_ms: int | None, version: str | None = None, offer: Offer = NO_OFFER
    ) -> Generation:
        """The generation from here on: no token is drawn twice, and all with one seed.

        Args:
            left_ms: until its deadline; None without one.
            version: the one that is to go on with it; None leaves it as it was asked for.
            offer: of the replica from which its blocks can be fetched. What the caller names is
                never passed on: an engine would go wherever it points.
        """
        generation = self._generation
        if self.accepted is not None:
            sampling = replace(generation.sampling, seed=self.accepted.seed)
            delivered = [*generation.generated_ids, *self.ids]
            generation = replace(generation, sampling=sampling, generated_ids=delivered)
        routing = replace(
            generation.routing, prefill_peer=offer.source, prefill_computes=offer.is_prefill
        )
        if version is not None:
            routing = replace(routing, model_version=version)
        generation = replace(generation, routing=routing)
        if left_ms is not None:
            quality = replace(generation.quality_of_service, timeout_ms=left_ms)
            generation = replace(generation, quality_of_service=quality)
        return generation

    def prompt(
        self, left_ms: int | None, version: str | None = None, peer: str | None = None
    ) -> Generation:
        """What `rest` would have to compute before its first token, and nothing more."""
        rest = self.rest(left_ms, version, Offer(source=peer))
        return replace(
            rest,
            prompt_ids=[*rest.prompt_ids, *rest.generated_ids],
            generated_ids=(),
            sampling=Sampling(seed=rest.sampling.seed),
            stopping=Stopping(max_tokens=0),
            output=Output(),
            constraint=None,
        )

    def whole(self, last: Finished, now: float, continuations: int) -> Finished:
        """The end as of one undisturbed output; a replica knows its own part alone."""
        if self.accepted is None:
            return last
        usage = replace(last.usage, cached_tokens=self.accepted.cached_tokens.total)
        timeline = Timeline(
            queued_us=_us(self._accepted_at - self.began_at),
            prefill_us=_us(self._first_at - self._accepted_at),
            decode_us=_us(now - self._first_at),
            preemptions=last.timeline.preemptions,
            continuations=continuations + last.timeline.continuations,
            cached_tokens=self.accepted.cached_tokens,
            admission_us=_us(self._sent_at - self.began_at),
        )
        return replace(last, usage=usage, timeline=timeline)

    def queued(self, end: Finished) -> Finished:
        """The end with the time before the generation was sent to its only replica."""
        waited_us, timeline = _us(self._sent_at - self.began_at), end.timeline
        if not waited_us:
            return end
        timeline = replace(
            timeline,
            queued_us=timeline.queued_us + waited_us,
            admission_us=timeline.admission_us + waited_us,
        )
        return replace(end, timeline=timeline)


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
