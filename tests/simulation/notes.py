"""The router's journal, kept as counts: each generation is opened once and closed once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from services.router.relay.outcome import Outcome
from services.shared.stream.generation import Generation
from tests.simulation.judge import Judge


@dataclass
class Note:
    """One generation; `outcome` is None while it runs."""

    request_id: str
    traceparent: str
    notes: Notes
    outcome: Outcome | None = None

    def close(self, outcome: Outcome) -> None:
        self.notes.closed(self, outcome)
        self.outcome = outcome


class Notes:
    """Those of one router."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.started = 0
        self.ended: Counter[str] = Counter()

    def open(self, generation: Generation, traceparent: str) -> Note:
        self.started += 1
        return Note(generation.request_id, traceparent, self)

    def closed(self, note: Note, outcome: Outcome) -> None:
        if note.outcome is not None:
            text = f"{note.request_id}: {outcome.end} after {note.outcome.end}"
            self._judge.broken("ends once", text)
        kind, _, why = outcome.end.partition(": ")
        self.ended[kind if why else "finished"] += 1
        if kind == "failed" and not outcome.error:
            self._judge.broken("fails with a reason", f"{note.request_id}: {outcome.end}")
