"""What every fault has: a world to strike and random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.session import Session

if TYPE_CHECKING:
    from tests.simulation.engine import Host
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

    def host(self) -> Host:
        return self.random.choice(self.world.hosts)

    def session(self) -> Session | None:
        """The router's session to some host; None where there is none."""
        life = self.world.front.life
        if life is None or not life.sessions:
            return None
        return life.sessions[self.random.choice(list(life.sessions))]

    def later(self, mean_s: float, heal: Callable[[], None]) -> None:
        self.world.loop.call_later(min(self.random.expovariate(1 / mean_s), LONGEST_S), heal)
