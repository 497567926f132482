"""A router that is a replica of another: its engines are reached through it alone."""

from __future__ import annotations

from services.router.status import Identity
from services.shared.stream.events import Cancel
from services.shared.stream.load import Load
from services.shared.stream.source import BlockWatcher, Submission
from tests.simulation.front import Front, Life
from tests.simulation.host import Host
from tests.simulation.network import Line


class NoBlocks:
    """A router has no blocks of its own to tell of."""

    def watch(self, watcher: BlockWatcher) -> None:
        """Tells nothing."""

    def unwatch(self, watcher: BlockWatcher) -> None:
        """Nothing was told."""


class RouterProcess:
    """One life of a router, as another router's sessions meet it."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self.blocks = NoBlocks()

    @property
    def source(self) -> RouterProcess:
        return self

    @property
    def identity(self) -> Identity | None:
        return self._life.router.identity

    def submit(self, submission: Submission) -> Cancel:
        return self._life.submit(submission)

    def load(self) -> Load:
        return self._life.router.load()

    def drive(self) -> None:
        """It moves by itself."""

    def end(self) -> None:
        """Its life has ended before."""


class ClusterHost(Host[RouterProcess]):
    """Where such a router runs."""

    def __init__(self, name: str, line: Line, front: Front) -> None:
        super().__init__(name, line, None, 0)
        self._front = front
        front.on_start = self.start
        front.on_crash = self.kill

    def begin(self) -> RouterProcess:
        return RouterProcess(self._life())

    def _life(self) -> Life:
        if self._front.life is None:
            raise RuntimeError(f"there is no router {self.name}")
        return self._front.life

    def describe(self) -> Identity | None:
        return None if self.process is None else self.process.identity
