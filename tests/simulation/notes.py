"""The router's journal, kept as counts: each generation is opened once and closed once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from services.router.relay.outcome import Destination, Outcome
from services.shared.stream.generation import Generation
from tests.simulation.judge import Judge


@dataclass
class Note:
    """One generation; `outcome` is None while it runs."""

    request_id: str
    traceparent: str
    notes: Notes
    outcome: Outcome | None = None
    waits: bool = False
    going: int = 0

    def wait(self) -> None:
        if self.outcome is not None:
            self.notes.broken(f"{self.request_id}: waits after {self.outcome.end}")
        self.waits = True

    def attempt(self, to: Destination) -> Attempted:
        self.waits = False
        self.going += 1
        return Attempted(self, to)

    def close(self, outcome: Outcome) -> None:
        self.notes.closed(self, outcome)
        self.outcome = outcome


@dataclass
class Attempted:
    """A way to a replica, under the trace of the generation; `end` is None while it is there."""

    note: Note
    to: Destination
    end: str | None = None

    @property
    def traceparent(self) -> str:
        return self.note.traceparent

    def close(self, end: str) -> None:
        if self.end is not None:
            self.note.notes.broken(f"{self.note.request_id}: {end} after {self.end}")
        self.end = end
        self.note.going -= 1


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
            self.broken(text)
        if note.going:
            self.broken(f"{note.request_id}: {outcome.end} while {note.going} go on")
        kind, _, why = outcome.end.partition(": ")
        self.ended[kind if why else "finished"] += 1
        if kind == "failed" and not outcome.error:
            self._judge.broken("fails with a reason", f"{note.request_id}: {outcome.end}")

    def broken(self, text: str) -> None:
        """A record that tells what cannot be."""
        self._judge.broken("ends once", text)
