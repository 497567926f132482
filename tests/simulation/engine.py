"""An engine process in virtual time: the real engine and step loop over a model of hashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from services.engine.block_feed import BlockFeed
from services.engine.engine import Engine
from services.engine.loop import Command, EngineLoop, Results
from services.shared.stream.load import Load, ReplicaState
from tests.simulation.caches import Caches
from tests.simulation.kv import KvRunner
from tests.simulation.parameters import EngineParameters
from tests.simulation.virtual_time import VirtualLoop

COMMANDS_S = 0.0001
"""How long commands take where nothing is computed."""


class DrivenLoop(EngineLoop):
    """Tells when a command has come; the real one's thread waits for that.

    Attributes:
        on_command: called after each.
    """

    on_command: Callable[[], None] = staticmethod(lambda: None)

    def command(self, command: Command) -> None:
        super().command(command)
        self.on_command()


@dataclass(frozen=True, slots=True)
class Parts:
    """The real parts of an engine, over a runner that computes hashes.

    Args:
        caches: None where it has its pool alone.
    """

    engine: Engine
    steps: DrivenLoop
    blocks: BlockFeed
    runner: KvRunner
    caches: Caches | None = None


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
        self.parts.steps.on_command = self.drive
        loop.call_later(parameters.startup_s, self._ready)

    @property
    def source(self) -> Engine:
        return self.parts.engine

    @property
    def blocks(self) -> BlockFeed:
        return self.parts.blocks

    def end(self) -> None:
        self.dead = True
        if self.parts.caches is not None:
            self.parts.caches.end()

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
        if self.parts.steps.scheduler.idle and not self.parts.runner.tokens:
            self._step_s = COMMANDS_S
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
