"""The faults, by name. Each heals by itself after a while."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.engine import Host

if TYPE_CHECKING:
    from tests.simulation.world import World


class Fault:
    """Strikes some host of a world.

    Attributes:
        random: its own numbers.
    """

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.random = random

    def strike(self) -> bool:
        """Whether there was something to strike."""
        raise NotImplementedError

    def host(self) -> Host:
        return self.random.choice(self.world.hosts)

    def later(self, mean_s: float, heal: Callable[[], None]) -> None:
        self.world.loop.call_later(min(self.random.expovariate(1 / mean_s), 20), heal)


class Kill(Fault):
    """The process dies and is started again, with nothing of what it had."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        host.kill()
        self.later(1.0, host.start)
        return True


class Cut(Fault):
    """The connections break off; the process lives."""

    def strike(self) -> bool:
        host = self.host()
        host.cut()
        return bool(host.connections)


class Freeze(Fault):
    """The process stops and goes on later, as by SIGSTOP."""

    def strike(self) -> bool:
        host = self.host()
        host.freeze()
        self.later(3.0, host.thaw)
        return host.process is not None


class Slow(Fault):
    """Each step takes ten times as long."""

    def strike(self) -> bool:
        process = self.host().process
        if process is None:
            return False
        process.slowness = 10.0

        def heal() -> None:
            process.slowness = 1.0

        self.later(2.0, heal)
        return True


class RouterRestart(Fault):
    """The router dies; a new one finds the same engines."""

    def strike(self) -> bool:
        if self.world.front.life is None:
            return False
        self.world.front.crash()
        self.later(0.5, self.world.start_router)
        return True


FAULTS: dict[str, type[Fault]] = {
    "kill": Kill,
    "cut": Cut,
    "freeze": Freeze,
    "slow": Slow,
    "router restart": RouterRestart,
}
