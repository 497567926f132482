"""What every fault has: a world to strike and random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.session import Session

if TYPE_CHECKING:
    from tests.simulation.engine_host import EngineHost
    from tests.simulation.front import Life
    from tests.simulation.machines import Machine
    from tests.simulation.world import World

LONGEST_S = 20.0


class Fault:
    """Strikes a world again and again; each stroke heals by itself."""

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.random = random

    def strike(self) -> bool:
        """Whether there was something to strike."""
        raise NotImplementedError

    def host(self) -> EngineHost:
        """Where some engine runs."""
        return self.random.choice(self.world.machines.hosts)

    def machine(self) -> Machine:
        """Where some engine runs, or a router that is another's replica."""
        return self.random.choice(self.world.machines.replicas())

    def life(self) -> Life | None:
        """Of some router; None while it is dead."""
        return self.random.choice(self.world.machines.fronts).life

    def session(self) -> Session | None:
        """Of some router to some replica; None where there is none."""
        life = self.life()
        if life is None or not life.sessions:
            return None
        return life.sessions[self.random.choice(list(life.sessions))]

    def busy_session(self) -> Session | None:
        """One that carries a generation; None where none does."""
        lives = [front.life for front in self.world.machines.fronts if front.life is not None]
        busy = [one for life in lives for one in life.sessions.values() if one.is_busy]
        return self.random.choice(busy) if busy else None

    def later(self, mean_s: float, heal: Callable[[], None]) -> None:
        self.world.loop.call_later(min(self.random.expovariate(1 / mean_s), LONGEST_S), heal)
