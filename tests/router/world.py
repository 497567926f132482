"""A relay over scripted sources in this process, with a clock that the test turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from services.router.admission.admission import Admission
from services.router.admission.admission_rules import AdmissionRules
from services.router.balancing.balancer import Balancer
from services.router.balancing.versions import Versions
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.fleet.replica import Replica
from services.router.fleet.room import RoomRules
from services.router.relay.outcome import Destination, Outcome
from services.router.relay.relay import Relay
from services.router.relay.retry_budget import RetryBudget, RetryRules
from services.router.status import Role
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.generation import Generation
from tests.router.identity import IDENTITY
from tests.router.kept_attempt import KeptAttempt
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

WAIT_S = 30.0
"""How long a generation that lost its replica waits for another one."""

BLOCK_TOKENS = 4

LOST = Failed(code=Code.UNAVAILABLE, message="the session ended", retryable=True)


@dataclass
class Note:
    """A journal's entry that keeps its outcome and its attempts."""

    generation: Generation
    traceparent: str
    outcome: Outcome | None = None
    waits: bool = False
    destinations: list[Destination] = field(default_factory=list)
    attempts: list[KeptAttempt] = field(default_factory=list)

    def wait(self) -> None:
        assert self.outcome is None
        self.waits = True

    def attempt(self, to: Destination) -> KeptAttempt:
        self.waits = False
        self.destinations.append(to)
        self.attempts.append(KeptAttempt(f"{len(self.attempts)} of {self.traceparent}"))
        return self.attempts[-1]

    def close(self, outcome: Outcome) -> None:
        assert self.outcome is None
        assert all(attempt.ends for attempt in self.attempts)
        self.outcome = outcome


@dataclass
class Notes:
    entries: list[Note] = field(default_factory=list)

    def open(self, generation: Generation, traceparent: str) -> Note:
        self.entries.append(Note(generation, f"router after {traceparent}"))
        return self.entries[-1]


class World:
    """A relay and what is around it; each replica is up and of one model.

    With roles, blocks of `BLOCK_TOKENS` can be fetched from each, and prompts of two blocks and
    more are worth a prefill.
    """

    def __init__(
        self,
        *names: str,
        room: RoomRules | None = None,
        max_waiting: int = 100,
        versions: Versions | None = None,
        retries: RetryRules | None = None,
        roles: Mapping[str, Role] | None = None,
    ) -> None:
        self.roles = roles or {}
        self.clock = ManualClock()
        self.notes = Notes()
        fetches = bool(roles)
        self.sources = {name: ScriptedSource(fetches_blocks=fetches) for name in names}
        prefill = PrefillRules(threshold_tokens=2 * BLOCK_TOKENS, peer_tokens=1)
        fleet_rules = FleetRules(room=room, versions=versions or Versions(), prefill=prefill)
        self.fleet = Fleet(self.clock, fleet_rules, self._changed)
        rules = AdmissionRules(max_waiting=max_waiting, wait_for_replica_s=WAIT_S)
        self.balancer = Balancer()
        self.admission = Admission(self.fleet, self.clock, lambda: 0.5, rules, self.balancer)
        self.budget = RetryBudget(retries or RetryRules())
        self.relay = Relay(self.fleet, self.admission, self.clock, self.notes, budget=self.budget)
        self.fleet.evacuate = self.relay.evacuate
        for name, source in self.sources.items():
            self.fleet.add(Replica(name, source))
            self.come_again(name)

    def come_again(self, name: str, version: str = IDENTITY.version) -> None:
        """The replica's session comes up and it describes itself."""
        self.report(name)
        identity = replace(IDENTITY, version=version)
        if self.roles:
            identity = replace(identity, block_size=BLOCK_TOKENS, role=self.roles[name])
        self.fleet.tell_identity(name, identity)

    def report(self, name: str) -> None:
        """The replica's load arrives."""
        self.fleet.tell_load(name, self.sources[name].load())

    def lose(self, name: str, request: str, failed: Failed = LOST) -> None:
        """The replica loses one generation, unless it has been cancelled there."""
        playing = self.sources[name].running.pop(request, None)
        if playing is not None:
            playing.emit(failed)

    def die(self, name: str) -> None:
        """The replica's session ends, with all its generations."""
        self.fleet.tell_load(name, None)
        for request in list(self.sources[name].running):
            self.lose(name, request)

    def play(self, steps: int = 10) -> None:
        for _ in range(steps):
            for source in self.sources.values():
                source.step()

    def pass_time(self, seconds: float) -> None:
        """Time goes by; replicas that are up tell their loads, and the fleet is looked at."""
        self.clock.pass_time(seconds)
        for replica in self.fleet:
            if replica.load is not None:
                self.report(replica.name)
        self.fleet.sweep()

    def where(self, request: str) -> str | None:
        """The replica that has a generation."""
        return next((name for name, one in self.sources.items() if request in one.running), None)

    def outstanding(self) -> dict[str, int]:
        return {name: self.fleet[name].outstanding_tokens for name in self.sources}

    @property
    def outcomes(self) -> list[Outcome]:
        return [note.outcome for note in self.notes.entries if note.outcome is not None]

    def _changed(self) -> None:
        self.admission.pump()
