"""Prompts that are computed at one replica for generations at others, as seen on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.router.relay.prefill import Prefill
from services.shared.stream.source import Submission
from tests.simulation.judge import Judge
from tests.simulation.sent import Place, Sent, sent_to


def is_prefill(submission: Submission) -> bool:
    """Whether its events go to nobody's generation."""
    return isinstance(getattr(submission.sink, "__self__", None), Prefill)


class Prefills:
    """Those of one router, each by the record of the generation that it is for."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._open: dict[str, Sent] = {}
        self._refused: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._open

    def all(self) -> Iterable[Sent]:
        return self._open.values()

    def is_empty(self) -> bool:
        return not self._open

    def submitted(self, place: Place, submission: Submission, cached: int) -> None:
        """One begins."""
        generation, key = submission.generation, submission.traceparent
        self._judge.saw("a prefill")
        if key in self._open:
            text = f"{generation.request_id} at {self._open[key].place} and {place}"
            self._judge.broken("one prefill at a time", text)
        if generation.stopping.max_tokens != 0 or generation.generated_ids:
            self._judge.broken("a prefill has no output", f"{generation}")
        self._open[key] = sent_to(place, generation, cached)

    def refused(self, submission: Submission) -> None:
        """The session took it not; the router hears of that at its next turn."""
        self._refused.append(submission.traceparent)

    def settle(self) -> list[str]:
        """The router has heard of what was refused; returns whose prefill that was."""
        refused, self._refused = self._refused, []
        return [key for key in refused if self._open.pop(key, None) is not None]

    def over(self, submission: Submission, how: str) -> Place | None:
        """It has ended; returns where it was, if it was known."""
        sent = self._open.pop(submission.traceparent, None)
        if sent is None:
            return None
        self._judge.saw(f"a prefill {how}")
        return sent.place

    def check(self, generations: Mapping[str, Sent]) -> None:
        """Each is for a generation that waits for it."""
        for key, sent in self._open.items():
            generation = generations.get(key)
            if generation is None or generation.begun:
                self._judge.broken("a prefill ends with its leg", f"{key} at {sent.place}")
