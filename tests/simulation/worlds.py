"""Which world a seed gives."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.backlog_world import backlog_world
from tests.simulation.mixed_world import mixed_world
from tests.simulation.world import Verdict, World

BACKLOG_EVERY = 25
BACKLOG_AT = 11


def run_world(seed: int, without: Iterable[str] = ()) -> Verdict:
    """Args: without: names of faults that are left out."""
    backlog = seed % BACKLOG_EVERY == BACKLOG_AT
    parameters = backlog_world(seed) if backlog else mixed_world(seed)
    return World(parameters, without).run()
