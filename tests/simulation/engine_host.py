"""Where an engine runs."""

from __future__ import annotations

from collections.abc import Callable

from services.router.status import Identity
from tests.simulation.caches import Caches
from tests.simulation.engine import Process
from tests.simulation.host import Host
from tests.simulation.network import Line
from tests.simulation.parameters import EngineParameters


class EngineHost(Host[Process]):
    """One engine after the other, of the same parameters.

    Args:
        start: a process with a version of the model.

    Attributes:
        identity: what it says that it serves.
        version: of the model that the next process has.
    """

    def __init__(
        self,
        name: str,
        line: Line,
        parameters: EngineParameters,
        identity: Identity,
        start: Callable[[str], Process],
    ) -> None:
        super().__init__(name, line, parameters.pool, parameters.coalesce_s)
        self.parameters = parameters
        self.identity = identity
        self.version = identity.version
        self._start = start

    def begin(self) -> Process:
        return self._start(self.version)

    @property
    def caches(self) -> Caches | None:
        """What its process has beyond its pool; None where there is none."""
        return None if self.process is None else self.process.parts.caches

    def describe(self) -> Identity:
        return self.identity

    def freeze(self) -> None:
        """The process stops as it is; its connections stay."""
        if self.process is not None:
            self.process.stuck = True
            self.fall_silent(frames=True, commands=True)

    def thaw(self) -> None:
        if self.process is not None:
            self.process.go_on()
        self.speak()
