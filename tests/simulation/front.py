"""The router of now, with sessions to all hosts; a new one takes its place after its end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol

from services.router.demand import Lane
from services.router.status import Identity
from services.shared.errors import Code, Unavailable
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Accepted, Cancel, CancelReason, Event, Failed, Tokens
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.simulation.assembly import Router
from tests.simulation.judge import Judge
from tests.simulation.legs import Legs, Witness
from tests.simulation.notes import Notes
from tests.simulation.router_rules import RouterRules
from tests.simulation.session import Distant, Session
from tests.simulation.virtual_time import VirtualLoop

DESCRIBED_AFTER_S = 0.02
FORGOTTEN_AFTER_S = 0.5
LOST = Failed(code=Code.UNAVAILABLE, message="the session to the router ended", retryable=True)


class Hearing:
    """Passes to the router what the session to one replica brings."""

    def __init__(self, host: Replica, life: Life) -> None:
        self._host = host
        self._life = life
        self._revision: int | None = None

    def came_up(self) -> None:
        self._life.legs.came_up(self._host.name)
        self._life.note("up", self._host.name)

    def load(self, load: Load | None) -> None:
        revision = None if load is None else load.description_revision
        if revision is None:
            self._life.note("down", self._host.name)
        elif revision != self._revision:
            self._life.loop.call_later(DESCRIBED_AFTER_S, self._describe, revision)
        self._revision = revision
        self._life.router.tell_load(self._host.name, load)
        if load is None:
            self._life.on_change()

    def blocks(self, events: BlockEvents) -> None:
        self._life.router.tell_blocks(self._host.name, events)

    def fault(self, fault: str) -> None:
        self._life.judge.saw("breach of the protocol")
        self._life.legs.blame(self._host.name)
        self._life.router.tell_fault(self._host.name, fault)

    def _describe(self, revision: int) -> None:
        """It is asked until it knows, unless its session is down or it is to be asked anew."""
        if revision != self._revision or self._life.is_over:
            return
        described = self._host.describe()
        if described is None:
            self._life.loop.call_later(DESCRIBED_AFTER_S, self._describe, revision)
        else:
            self._life.router.tell_identity(self._host.name, described)
            self._life.on_change()


class Replica(Distant, Protocol):
    """A replica as a router is configured with it."""

    @property
    def pool(self) -> Lane | None: ...

    def describe(self) -> Identity | None: ...


class Life:
    """One life of a router, and the generations that it has from clients.

    Attributes:
        on_change: called when a replica has gone, or has said what it serves.
        leaving: it was told to stop.
    """

    def __init__(
        self, name: str, loop: VirtualLoop, random: Random, judge: Judge, rules: RouterRules
    ) -> None:
        self.name = name
        self.loop = loop
        self.judge = judge
        self.notes = Notes(judge)
        self.legs = Legs(loop.time, judge)
        self.router = Router(loop, random, self.notes, rules)
        self.legs.cached_at = self.router.cached_at
        self.legs.whole_at = self.router.whole_at
        self.sessions: dict[str, Session] = {}
        self.hosts: dict[str, Replica] = {}
        self.legs.knows = self.sessions.__contains__
        self._sinks: dict[int, Callable[[Event], None]] = {}
        self._next = 0
        self._dismissed: dict[str, None] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.is_over = False
        self.leaving = False

    def meet(self, host: Replica) -> None:
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
        self.router.add(session, host.pool)
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
        self._sinks[number] = submission.sink

        def sink(event: Event) -> None:
            if self.is_over:
                return
            if not isinstance(event, (Accepted, Tokens)):
                self._sinks.pop(number, None)
            submission.sink(event)

        there = Submission(submission.generation, f"{self.name} {number}", sink)
        self.legs.asked(there)
        try:
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
    """Where a router is found, if there is one.

    Args:
        begin: a new life of the router.

    Attributes:
        life: of the router that is there; None between two.
        on_start: called when there is one again.
        on_crash: called when there is none any more.
    """

    def __init__(self, name: str, begin: Callable[[Front], Life]) -> None:
        self.name = name
        self.life: Life | None = None
        self.on_start: Callable[[], None] = lambda: None
        self.on_crash: Callable[[], None] = lambda: None
        self._begin = begin

    def submit(self, submission: Submission) -> Cancel:
        if self.life is None:
            raise Unavailable("no router is reachable")
        return self.life.submit(submission)

    def start(self) -> None:
        """Does nothing while there is one."""
        if self.life is None:
            self.life = self._begin(self)
            self.on_start()

    def crash(self) -> None:
        """The router ends at once."""
        life, self.life = self.life, None
        if life is not None:
            life.crash()
            self.on_crash()
