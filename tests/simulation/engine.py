"""An engine process in virtual time: the real engine and step loop over a model of hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from services.engine.block_feed import BlockFeed
from services.engine.engine import Engine
from services.engine.loop import EngineLoop, Results
from services.router.status import Identity
from services.shared.stream.load import Load, ReplicaState
from tests.simulation.door import Door
from tests.simulation.kv import KvRunner
from tests.simulation.network import Connection, Line
from tests.simulation.parameters import EngineParameters
from tests.simulation.session import Down, Receive
from tests.simulation.virtual_time import VirtualLoop


@dataclass(frozen=True, slots=True)
class Parts:
    """The real parts of an engine, over a runner that computes hashes."""

    engine: Engine
    steps: EngineLoop
    blocks: BlockFeed
    runner: KvRunner


Report = Callable[[Load], Load | None]
Assemble = Callable[[Callable[[Results], None]], Parts]


class Process:
    """One life of an engine.

    Attributes:
        slowness: what each step's time is multiplied by.
        stuck: no step ends any more.
        leaving: it was told to stop.
    """

    def __init__(self, loop: VirtualLoop, parameters: EngineParameters, assemble: Assemble) -> None:
        self._loop = loop
        self._parameters = parameters
        self.parts = assemble(self._keep)
        self._results: Results = []
        self._computing = False
        self._late = False
        self._step_s = 0.0
        self.slowness = 1.0
        self.stuck = False
        self.dead = False
        self.leaving = False
        self.on_step: Callable[[], None] = lambda: None
        loop.call_later(parameters.startup_s, self._ready)

    def drive(self) -> None:
        """There may be something to do."""
        if not self._computing and not self.dead:
            self._computing = True
            self._loop.call_soon(self._begin)

    def go_on(self) -> None:
        """Ends being stuck."""
        self.stuck = False
        if self._late:
            self._late = False
            self._end()

    def load(self) -> Load:
        return replace(self.parts.engine.load(), step_us=round(self._step_s * 1e6))

    def _ready(self) -> None:
        if self.parts.engine.state is ReplicaState.STARTING:
            self.parts.engine.state = ReplicaState.READY

    def _begin(self) -> None:
        if self.dead:
            return
        self.parts.runner.tokens = 0
        self.parts.steps.step()
        parameters = self._parameters
        self._step_s = parameters.step_s + parameters.token_s * self.parts.runner.tokens
        self._step_s *= self.slowness
        self._loop.call_later(self._step_s, self._end)

    def _end(self) -> None:
        if self.dead:
            return
        if self.stuck:
            self._late = True
            return
        results, self._results = self._results, []
        self.parts.engine.deliver(results)
        self.on_step()
        steps = self.parts.steps
        self._computing = not (steps.scheduler.idle and steps._commands.empty())
        if self._computing:
            self._begin()
        else:
            steps.progress.resting()

    def _keep(self, results: Results) -> None:
        self._results += results


class Host:
    """Where an engine runs, for one life after the other.

    Attributes:
        identity: what it says that it serves.
        version: of the model that the next process has.
        process: None while it is dead.
        lives: processes so far.
        report: what it says of a load; None says nothing.
    """

    def __init__(
        self,
        name: str,
        line: Line,
        parameters: EngineParameters,
        identity: Identity,
        start: Callable[[str], Process],
    ) -> None:
        self.name = name
        self.line = line
        self.parameters = parameters
        self.identity = identity
        self.version = identity.version
        self._start = start
        self.process: Process | None = None
        self.lives = 0
        self.connections: list[tuple[Connection, Door]] = []
        self.report: Report = honest

    def start(self) -> None:
        """Does nothing while it runs."""
        if self.process is None:
            self.process = self._start(self.version)
            self.lives += 1

    def kill(self) -> None:
        """The process ends at once, and so do its connections."""
        process, self.process = self.process, None
        if process is None:
            return
        process.dead = True
        for connection, door in self.connections:
            door.abandon()
            connection.cut()
        self.connections = []

    def freeze(self) -> None:
        """The process stops as it is; its connections stay."""
        if self.process is not None:
            self.process.stuck = True
            self.fall_silent(frames=True, commands=True)

    def thaw(self) -> None:
        if self.process is not None:
            self.process.go_on()
        self.speak()

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
        door = Door(
            self.line.loop,
            process.parts.engine,
            process.parts.blocks,
            self.parameters.coalesce_s,
            self._report,
        )

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
        return None if self.process is None else self.report(self.process.load())


def honest(load: Load) -> Load:
    return load
