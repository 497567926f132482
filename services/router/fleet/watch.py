"""The watch over a fleet while it serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.router.clock import Clock
from services.router.fleet.fleet import Fleet
from services.router.fleet.prober import Prober


@contextmanager
def watching(fleet: Fleet, clock: Clock) -> Iterator[None]:
    """Judges and probes the replicas again and again, inside the block."""
    prober = Prober(fleet, clock)
    fleet.start()
    prober.start()
    try:
        yield
    finally:
        prober.stop()
        fleet.stop()
