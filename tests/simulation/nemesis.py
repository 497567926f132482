"""What goes wrong in a world: each fault at a rate of its own, with random numbers of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.faults.catalogue import FAULTS
from tests.simulation.faults.fault import Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

SHARE = 0.2
"""Of all faults, on average, that a world has."""

SHARE_OF_FEW = 0.4
"""The same where only few may be there at all."""


class Nemesis:
    """Strikes until the end.

    Args:
        without: names of faults that are left out.
    """

    def __init__(self, world: World, without: Iterable[str] = ()) -> None:
        self._world = world
        self._faults: dict[str, tuple[Fault, float]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        left_out = frozenset(without)
        for name, fault in FAULTS.items() if world.parameters.has_faults else ():
            random = world.random(f"fault {name}")
            if random.random() < self._share(name) and name not in left_out:
                mean_s = world.parameters.duration_s / random.uniform(1, 6)
                self._faults[name] = (fault(world, random), mean_s)

    def _share(self, name: str) -> float:
        """How likely it is that the world has a fault."""
        only = self._world.parameters.faults
        if only is None:
            return SHARE
        return SHARE_OF_FEW if name in only else 0

    @property
    def names(self) -> list[str]:
        """Faults of this world."""
        return list(self._faults)

    def begin(self) -> None:
        for name, (fault, mean_s) in self._faults.items():
            self._wait(name, fault, mean_s)

    def end(self) -> None:
        """Strikes no more; what was done heals by itself."""
        for timer in self._timers.values():
            timer.cancel()

    def _wait(self, name: str, fault: Fault, mean_s: float) -> None:
        pause_s = fault.random.expovariate(1 / mean_s)
        timer = self._world.loop.call_later(pause_s, self._strike, name, fault, mean_s)
        self._timers[name] = timer

    def _strike(self, name: str, fault: Fault, mean_s: float) -> None:
        self._world.history.note("fault", fault=name)
        if fault.strike():
            self._world.judge.saw(f"fault {name}")
        self._world.machines.check()
        self._wait(name, fault, mean_s)
