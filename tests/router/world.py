"""A relay over scripted sources in this process, with a clock that the test turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.router.admission import Admission, AdmissionRules
from services.router.fleet import Fleet, FleetRules
from services.router.outcome import Outcome
from services.router.relay import Relay
from services.router.replica import Replica
from services.router.room import RoomRules
from services.shared.stream.generation import Generation
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

WAIT_S = 30.0
"""How long a generation that lost its replica waits for another one."""


@dataclass
class Note:
    """A journal's entry that keeps its outcome."""

    generation: Generation
    traceparent: str
    outcome: Outcome | None = None

    def close(self, outcome: Outcome) -> None:
        assert self.outcome is None
        self.outcome = outcome


@dataclass
class Notes:
    entries: list[Note] = field(default_factory=list)

    def open(self, generation: Generation, traceparent: str) -> Note:
        self.entries.append(Note(generation, f"router after {traceparent}"))
        return self.entries[-1]


class World:
    """A relay and what is around it; each replica is up and of one model, and has room."""

    def __init__(self, *names: str, room: RoomRules | None = None, max_waiting: int = 100) -> None:
        self.clock = ManualClock()
        self.notes = Notes()
        self.sources = {name: ScriptedSource() for name in names}
        self.fleet = Fleet(self.clock, FleetRules(room=room))
        for name, source in self.sources.items():
            self.fleet.add(Replica(name, source))
            self.report(name)
            self.fleet.tell_identity(name, IDENTITY)
        rules = AdmissionRules(max_waiting=max_waiting, wait_for_replica_s=WAIT_S)
        self.admission = Admission(self.fleet, self.clock, lambda: 0.5, rules)
        self.relay = Relay(self.fleet, self.admission, self.clock, self.notes)

    def report(self, name: str) -> None:
        """The replica's load arrives."""
        self.fleet.tell_load(name, self.sources[name].load())

    def come_again(self, name: str) -> None:
        """The replica is up after it was gone."""
        self.report(name)
        self.fleet.tell_identity(name, IDENTITY)
        self.admission.pump()

    def outstanding(self) -> dict[str, int]:
        return {name: self.fleet[name].outstanding_tokens for name in self.sources}

    @property
    def outcomes(self) -> list[Outcome]:
        return [note.outcome for note in self.notes.entries if note.outcome is not None]
