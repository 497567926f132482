"""Every way of a generation to a replica, as seen on the wire and counted apart from the router."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from services.shared.errors import Code
from services.shared.stream.events import Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission
from tests.simulation.judge import Judge
from tests.simulation.prefills import Prefills, is_prefill
from tests.simulation.sent import NOTHING, Counts, Place, Sent, sent_to

ROUNDING_S = 0.002
BLAMED = frozenset({Code.UNAVAILABLE, Code.INTERNAL, Code.DATA_LOSS, Code.UNKNOWN})
OWN = ""
"""The record of the router's own generations, its probes, which count as no traffic."""

Cached = Callable[[str, Generation], int]


class Legs:
    """Those of one router; each generation is known by the record that the router has of it.

    Attributes:
        sent_at: when each generation was, first.
        retries: times that a generation was sent after a failure.
        rows: how many failures in a row, by its own fault, a replica had at some time.
        cached_at: what the router knows to be cached of a generation at a replica.
        whole_at: tokens in whole blocks before the last token of a generation, at a replica.
        knows: whether a replica of a name is the router's.
    """

    def __init__(self, time: Callable[[], float], judge: Judge) -> None:
        self._time = time
        self._judge = judge
        self._open: dict[str, Sent] = {}
        self._prefills = Prefills(judge)
        self._failed: dict[str, Place] = {}  # since the last token
        self._epochs: Counter[str] = Counter()
        self.sent_at: dict[str, float] = {}
        self.retries = 0
        self._after_failure: dict[str, None] = {}
        self._refused = 0
        self._deadlines: dict[str, float] = {}
        self._in_a_row: Counter[str] = Counter()
        self.rows: dict[tuple[str, float], int] = {}
        self.cached_at: Cached = _nothing
        self.whole_at: Cached = _nothing
        self.knows: Callable[[str], bool] = lambda _: False

    def asked(self, submission: Submission) -> None:
        """The router is asked."""
        timeout_ms = submission.generation.quality_of_service.timeout_ms
        if timeout_ms is not None:
            self._deadlines[submission.traceparent] = self._time() + timeout_ms / 1000

    def came_up(self, name: str) -> None:
        self._epochs[name] += 1

    def counts(self) -> dict[str, Counts]:
        """By replica; those that have nothing are left out."""
        counts: dict[str, Counts] = {}
        for sent in (*self._open.values(), *self._prefills.all()):
            counts[sent.place[0]] = counts.get(sent.place[0], NOTHING).plus(sent)
        return counts

    def is_empty(self) -> bool:
        return not self._open and self._prefills.is_empty()

    def check(self) -> None:
        """Whenever the router has heard of all that it was told."""
        if self.is_settled:
            self._prefills.check(self._open)

    def submitted(self, name: str, submission: Submission) -> None:
        generation, key = submission.generation, submission.traceparent
        request_id, place = generation.request_id, (name, self._epochs[name])
        if key == OWN:
            return
        self._judge.history.note("sent", request=request_id, to=name, epoch=place[1])
        self._check_deadline(submission)
        self._check_peer(generation)
        if is_prefill(submission):
            self._prefills.submitted(place, submission, self.cached_at(name, generation))
            return
        if key in self._open:
            text = f"{request_id} at {self._open[key].place} went to {place}"
            self._judge.broken("live on one replica", text)
        if self._failed.get(key) == place:
            self._judge.broken("not where it just failed", f"{request_id} went to {place} again")
        self.sent_at.setdefault(request_id, self._time())
        if key in self._after_failure:
            del self._after_failure[key]
            self.retries += 1
            self._judge.saw("a retry")
        self._open[key] = self._sent(place, submission)

    def refused(self, submission: Submission) -> None:
        """The session took it not; the router hears of that at its next turn."""
        self._refused += 1
        if is_prefill(submission):
            self._prefills.refused(submission)
        elif submission.traceparent != OWN:
            self._fail(submission)

    def settle(self) -> None:
        """The router has heard of one refusal."""
        self._refused -= 1
        if self.is_settled:
            for key in self._prefills.settle():
                self._lose_prefill(key)

    @property
    def is_settled(self) -> bool:
        """Whether the router has heard of all that it was told."""
        return not self._refused

    def cancelled(self, submission: Submission) -> None:
        if is_prefill(submission):
            self._prefills.over(submission, "cancelled")
        else:
            self._open.pop(submission.traceparent, None)

    def brought(self, submission: Submission, event: Event) -> None:
        if is_prefill(submission):
            self._prefill_brought(submission, event)
            return
        sent = self._open.get(submission.traceparent)
        if sent is None:
            return
        if isinstance(event, Tokens):
            sent.bring(len(event.ids))
            self._failed.pop(submission.traceparent, None)
        elif isinstance(event, Failed):
            if event.code in BLAMED:
                self.blame(sent.place[0])
            self._fail(submission)
        elif isinstance(event, Finished):
            self._in_a_row[sent.place[0]] = 0
            self._close(submission)

    def _prefill_brought(self, submission: Submission, event: Event) -> None:
        if isinstance(event, Finished):
            place = self._prefills.over(submission, "finished")
            if place is not None:
                self._in_a_row[place[0]] = 0
        elif isinstance(event, Failed):
            place = self._prefills.over(submission, "failed")
            if place is not None:
                self._lose_prefill(submission.traceparent)
                if event.code in BLAMED:
                    self.blame(place[0])

    def _lose_prefill(self, key: str) -> None:
        if key in self._open:
            self._open[key].lose_prefill()

    def blame(self, name: str) -> None:
        """The replica failed by its own fault."""
        self._in_a_row[name] += 1
        self.rows[name, self._time()] = self._in_a_row[name]

    def _check_deadline(self, submission: Submission) -> None:
        """A replica is told how much time is left, not how much there was."""
        deadline = self._deadlines.get(submission.traceparent)
        if deadline is None:
            return
        timeout_ms = submission.generation.quality_of_service.timeout_ms
        if timeout_ms is None or self._time() + timeout_ms / 1000 > deadline + ROUNDING_S:
            text = f"{submission.generation.request_id} has {timeout_ms} ms at the replica"
            self._judge.broken("deadlines are passed on", text)

    def _check_peer(self, generation: Generation) -> None:
        """Engines hear of the router's replicas alone, whoever a caller names."""
        peer = generation.routing.prefill_peer
        if peer is not None and not self.knows(peer):
            self._judge.broken("peers are replicas", f"{generation.request_id}: {peer}")

    def _sent(self, place: Place, submission: Submission) -> Sent:
        """What is known to be cached there, or where its peer is, is nothing to compute."""
        generation, name = submission.generation, place[0]
        found, peer = self.cached_at(name, generation), generation.routing.prefill_peer
        if peer is None:
            return sent_to(place, generation, found)
        if submission.traceparent in self._prefills:
            awaited = max(0, self.whole_at(peer, generation) - found)
            return sent_to(place, generation, found + awaited, awaited)
        self._judge.saw("a peer")
        return sent_to(place, generation, max(found, self.cached_at(peer, generation)))

    def _fail(self, submission: Submission) -> None:
        self._failed[submission.traceparent] = self._close(submission)
        self._after_failure[submission.traceparent] = None

    def _close(self, submission: Submission) -> Place:
        return self._open.pop(submission.traceparent).place


class Witness:
    """Sees the session to one replica."""

    def __init__(self, name: str, legs: Legs) -> None:
        self.submitted = partial(legs.submitted, name)
        self.refused = legs.refused
        self.settled = legs.settle
        self.cancelled = legs.cancelled
        self.brought = legs.brought


def _nothing(_: str, __: Generation) -> int:
    return 0
