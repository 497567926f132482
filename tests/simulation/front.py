"""The router of now, with sessions to all hosts; a new one takes its place after its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from services.shared.errors import Code, Unavailable
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Accepted, Cancel, CancelReason, Event, Failed, Tokens
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.simulation.assembly import Router
from tests.simulation.engine import Host
from tests.simulation.judge import Judge
from tests.simulation.legs import Legs, Witness
from tests.simulation.notes import Notes
from tests.simulation.router_rules import RouterRules
from tests.simulation.session import Session
from tests.simulation.virtual_time import VirtualLoop

DESCRIBED_AFTER_S = 0.02
FORGOTTEN_AFTER_S = 0.5
LOST = Failed(code=Code.UNAVAILABLE, message="the session to the router ended", retryable=True)


@dataclass(frozen=True, slots=True)
class Hearing:
    """Passes to the router what the session to one replica brings."""

    host: Host
    life: Life

    @property
    def name(self) -> str:
        return self.host.name

    def came_up(self) -> None:
        self.life.legs.came_up(self.name)
        self.life.note("up", self.name)
        described = partial(self._describe, self.life.sessions[self.name].connection)
        self.life.loop.call_later(DESCRIBED_AFTER_S, described)

    def load(self, load: Load | None) -> None:
        if load is None:
            self.life.note("down", self.name)
        self.life.router.tell_load(self.name, load)

    def blocks(self, events: BlockEvents) -> None:
        self.life.router.tell_blocks(self.name, events)

    def fault(self, fault: str) -> None:
        self.life.judge.saw("breach of the protocol")
        self.life.legs.blame(self.name)
        self.life.router.tell_fault(self.name, fault)

    def _describe(self, connection: object) -> None:
        session = self.life.sessions.get(self.name)
        if session is not None and session.connection is connection and connection is not None:
            self.life.router.tell_identity(self.name, self.host.identity)


class Life:
    """One life of a router, and the generations that it has from clients."""

    def __init__(self, loop: VirtualLoop, random: Random, judge: Judge, rules: RouterRules) -> None:
        self.loop = loop
        self.judge = judge
        self.notes = Notes(judge)
        self.legs = Legs(loop.time, judge)
        self.router = Router(loop, random, self.notes, rules)
        self.legs.cached_at = self.router.cached_at
        self.sessions: dict[str, Session] = {}
        self.hosts: dict[str, Host] = {}
        self._sinks: dict[int, Callable[[Event], None]] = {}
        self._next = 0
        self._dismissed: dict[str, None] = {}
        self.is_over = False
        self.leaving = False

    def meet(self, host: Host) -> None:
        """A replica that is there from now on."""
        if host.name in self._dismissed:
            del self._dismissed[host.name]
            self.router.drain_replica(host.name, undo=True)
        if host.name in self.sessions:
            return
        witness = Witness(host.name, self.legs)
        session = Session(host, self.loop, Hearing(host, self), witness, self.judge)
        self.sessions[host.name] = session
        self.hosts[host.name] = host
        self.router.add(session, host.parameters.pool)
        session.connect()

    def allow(self, name: str) -> None:
        """A replica that was to take nothing may take generations again."""
        if not self.is_over and name in self.sessions and name not in self._dismissed:
            self.router.drain_replica(name, undo=True)

    def dismiss(self, name: str) -> None:
        """A replica that is to take nothing, and to be forgotten with its last generation."""
        self._dismissed[name] = None
        self.router.drain_replica(name, undo=False)
        self._forget(name)

    def _forget(self, name: str) -> None:
        if self.is_over or name not in self._dismissed:
            return
        if self.router.running_at(name):
            self.loop.call_later(FORGOTTEN_AFTER_S, self._forget, name)
            return
        del self._dismissed[name]
        self.sessions.pop(name).hang_up()
        self.router.remove(name)

    def submit(self, submission: Submission) -> Cancel:
        number, self._next = self._next, self._next + 1
        self.legs.asked(submission.generation)
        self._sinks[number] = submission.sink

        def sink(event: Event) -> None:
            if self.is_over:
                return
            if not isinstance(event, (Accepted, Tokens)):
                self._sinks.pop(number, None)
            submission.sink(event)

        try:
            there = Submission(submission.generation, submission.traceparent, sink)
            cancel_there = self.router.submit(there)
        except BaseException:
            del self._sinks[number]
            raise

        def cancel(reason: CancelReason) -> None:
            if not self.is_over and self._sinks.pop(number, None) is not None:
                cancel_there(reason)

        return cancel

    def crash(self) -> None:
        """The process ends at once: clients and replicas lose their sessions."""
        self.is_over = True
        self.router.close()
        for session in self.sessions.values():
            session.close()
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink(LOST)

    def note(self, what: str, name: str) -> None:
        self.judge.history.note(what, replica=name)


class Front:
    """Where clients find a router, if there is one.

    Attributes:
        life: of the router that is there; None between two.
        past: routers that have ended.
    """

    def __init__(self) -> None:
        self.life: Life | None = None
        self.past: list[Life] = []

    def submit(self, submission: Submission) -> Cancel:
        if self.life is None:
            raise Unavailable("no router is reachable")
        return self.life.submit(submission)

    def crash(self) -> None:
        life, self.life = self.life, None
        if life is not None:
            self.past.append(life)
            life.crash()
