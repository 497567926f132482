"""What goes wrong in a world: each fault at a rate of its own, with random numbers of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.faults import FAULTS, Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

SHARE = 0.35
"""Of all faults, on average, that a world has."""


class Nemesis:
    """Strikes until the end; what it did is then made good."""

    def __init__(self, world: World, without: Iterable[str] = ()) -> None:
        self._world = world
        self._left_out = frozenset(without)
        self.is_over = False

    def begin(self) -> None:
        if not self._world.parameters.has_faults:
            return
        for name, fault in FAULTS.items():
            random = self._world.random(f"fault {name}")
            if random.random() < SHARE and name not in self._left_out:
                mean_s = self._world.parameters.duration_s / random.uniform(1, 6)
                self._wait(name, fault(self._world, random), mean_s)

    def end(self) -> None:
        self.is_over = True

    def _wait(self, name: str, fault: Fault, mean_s: float) -> None:
        pause_s = fault.random.expovariate(1 / mean_s)
        self._world.loop.call_later(pause_s, self._strike, name, fault, mean_s)

    def _strike(self, name: str, fault: Fault, mean_s: float) -> None:
        if self.is_over:
            return
        self._world.history.note("fault", fault=name)
        if fault.strike():
            self._world.judge.saw(f"fault {name}")
        self._world.check()
        self._wait(name, fault, mean_s)
