"""Which world a seed gives."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.backlog_world import backlog_world
from tests.simulation.mixed_world import mixed_world
from tests.simulation.parameters import WorldParameters
from tests.simulation.separation_world import separation_world
from tests.simulation.world import Verdict, World

BACKLOG_EVERY = 25
BACKLOG_AT = 11
SEPARATION_EVERY = 10
SEPARATION_AT = 7


def run_world(seed: int, without: Iterable[str] = ()) -> Verdict:
    """Args: without: names of faults that are left out."""
    return World(_parameters(seed), without).run()


def _parameters(seed: int) -> WorldParameters:
    if seed % BACKLOG_EVERY == BACKLOG_AT:
        return backlog_world(seed)
    if seed % SEPARATION_EVERY == SEPARATION_AT:
        return separation_world(seed)
    return mixed_world(seed)
