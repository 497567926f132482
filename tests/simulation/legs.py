"""Every way of a generation to a replica, as seen on the wire and counted apart from the router."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

from services.shared.stream.events import Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission
from tests.simulation.judge import Judge

ASSUMED_OUTPUT_TOKENS = 512

Place = tuple[str, int]


@dataclass(slots=True)
class Sent:
    """A generation that is at a replica; `left` and `pending` are its tokens there."""

    place: Place
    left: int
    pending: int
    begun: bool = False

    def bring(self, tokens: int) -> None:
        if not self.begun:
            self.begun = True
            self.left -= self.pending
            self.pending = 0
        self.left = max(0, self.left - tokens)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of all generations at one replica."""

    running: int
    outstanding_tokens: int
    pending_tokens: int


class Legs:
    """Those of one router."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._open: dict[str, Sent] = {}
        self._failed: dict[str, Place] = {}
        self._epochs: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.unsettled = False

    def came_up(self, name: str) -> None:
        self._epochs[name] += 1

    def at(self, name: str) -> Counts:
        there = [sent for sent in self._open.values() if sent.place[0] == name]
        return Counts(
            len(there), sum(sent.left for sent in there), sum(sent.pending for sent in there)
        )

    def is_empty(self) -> bool:
        return not self._open

    @property
    def retries(self) -> int:
        """Times that a generation was sent to a second or later replica."""
        return sum(self.sent.values()) - len(self.sent)

    def submitted(self, name: str, submission: Submission) -> None:
        generation = submission.generation
        request_id, place = generation.request_id, (name, self._epochs[name])
        self._judge.history.note("sent", request=request_id, to=name, epoch=place[1])
        if request_id in self._open:
            at = self._open[request_id].place
            self._judge.broken("live on one replica", f"{request_id} at {at} went to {place}")
        if self._failed.get(request_id) == place:
            self._judge.broken("not where it just failed", f"{request_id} went to {place} again")
        self.sent[request_id] += 1
        self._open[request_id] = _sent(place, generation)

    def refused(self, submission: Submission) -> None:
        """The session took it not; the router hears of that at its next turn."""
        self.unsettled = True
        self._failed[submission.generation.request_id] = self._close(submission)

    def settle(self) -> None:
        """The router has heard of all refusals."""
        self.unsettled = False

    def cancelled(self, submission: Submission) -> None:
        self._open.pop(submission.generation.request_id, None)

    def brought(self, submission: Submission, event: Event) -> None:
        sent = self._open.get(submission.generation.request_id)
        if sent is None:
            return
        if isinstance(event, Tokens):
            sent.bring(len(event.ids))
        elif isinstance(event, Failed):
            self._failed[submission.generation.request_id] = self._close(submission)
        elif isinstance(event, Finished):
            self._close(submission)

    def _close(self, submission: Submission) -> Place:
        return self._open.pop(submission.generation.request_id).place


class Witness:
    """Sees the session to one replica."""

    def __init__(self, name: str, legs: Legs) -> None:
        self.submitted = partial(legs.submitted, name)
        self.refused = legs.refused
        self.cancelled = legs.cancelled
        self.brought = legs.brought


def _sent(place: Place, generation: Generation) -> Sent:
    pending = len(generation.prompt_ids) + len(generation.generated_ids)
    limit = generation.stopping.max_tokens
    given = len(generation.generated_ids)
    coming = ASSUMED_OUTPUT_TOKENS if limit is None else limit - given
    return Sent(place, pending + coming, pending)
