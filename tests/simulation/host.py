"""Where a process runs, for one life after the other, and how it is reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from services.router.demand import Lane
from services.router.status import Identity
from services.shared.stream.load import Load
from services.shared.stream.source import BlockSource, TokenSource
from tests.simulation.door import Door
from tests.simulation.network import Connection, Line
from tests.simulation.session import Down, Receive

Report = Callable[[Load], Load | None]


class Served(Protocol):
    """A process that sessions can be had with."""

    @property
    def source(self) -> TokenSource: ...

    @property
    def blocks(self) -> BlockSource: ...

    def load(self) -> Load: ...

    def drive(self) -> None:
        """There may be something to do."""

    def end(self) -> None:
        """It is dead from now on."""


P = TypeVar("P", bound=Served)


class Host(Generic[P]):
    """A place with a name and a line to it.

    Args:
        pool: the only lane that the process takes; None for both.
        coalesce_s: how long events wait for others to go with them.

    Attributes:
        process: None while it is dead.
        report: what it says of a load; None says nothing.
        honest_since: since when its loads are true and come soon; None while they are not.
    """

    def __init__(self, name: str, line: Line, pool: Lane | None, coalesce_s: float) -> None:
        self.name = name
        self.line = line
        self.pool = pool
        self.process: P | None = None
        self.connections: list[tuple[Connection, Door]] = []
        self.report: Report = honest
        self.honest_since: float | None = None
        self._coalesce_s = coalesce_s

    def begin(self) -> P:
        """A new process."""
        raise NotImplementedError

    def describe(self) -> Identity | None:
        """What it says that it serves; None while it does not know."""
        raise NotImplementedError

    def start(self) -> None:
        """Does nothing while it runs."""
        if self.process is None:
            self.process = self.begin()

    def kill(self) -> None:
        """The process ends at once, and so do its connections."""
        process, self.process = self.process, None
        if process is None:
            return
        process.end()
        for connection, door in self.connections:
            door.abandon()
            connection.cut()
        self.connections = []

    def fall_silent(self, *, frames: bool, commands: bool) -> None:
        self.line.is_open = False
        for connection, _ in self.connections:
            connection.fall_silent(frames=frames, commands=commands)

    def speak(self) -> None:
        self.line.is_open = True
        for connection, _ in self.connections:
            connection.speak()

    def cut(self) -> None:
        """Ends the connections; the process lives."""
        for connection, _ in list(self.connections):
            connection.cut()

    def dial(self, receive: Receive, down: Down) -> Connection | None:
        """A connection to the process; None while it is not reachable."""
        process = self.process
        if process is None or not self.line.is_open:
            return None
        door = Door(self.line.loop, process.source, process.blocks, self._coalesce_s, self._report)

        def closed() -> None:
            door.close()
            self.connections = [pair for pair in self.connections if pair[1] is not door]
            process.drive()

        connection = Connection(self.line, receive, door.receive, down, closed)
        door.send = connection.frames.send
        door.on_command = process.drive
        self.connections.append((connection, door))
        door.open()
        return connection

    def _report(self) -> Load | None:
        if self.process is None:
            return None
        load = self.process.load()
        told = self.report(load)
        if told is not load or self.line.extra_s:
            self.honest_since = None
        elif self.honest_since is None:
            self.honest_since = self.line.loop.time()
        return told


def honest(load: Load) -> Load:
    return load
