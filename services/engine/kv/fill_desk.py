"""Where fills meet the step loop: leases for what comes, and the way in for their sequences."""

from __future__ import annotations

import time

from services.engine.kv.fill import Fill
from services.engine.loop import EngineLoop
from services.shared.stream.events import CacheMiss

PORTION = 32
"""Blanks that are leased between two steps: each may have to be copied to host memory before."""


class FillDesk:
    """Leases a fill's blocks and lets its sequence in. All for the step loop's thread.

    Of the fills that lack the same block first only one goes on; the others wait for it.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop
        self._going: dict[bytes, Fill] = {}

    def look(self, fill: Fill) -> Fill | None:
        """Leases what is found and some blanks; gives the fill to wait for instead.

        If nothing is missing or there is no room, the sequence enters.
        """
        scheduler = self._loop.scheduler
        found = scheduler.pool.match(fill.addresses)
        missing = fill.addresses[len(found) :]
        if missing and missing[0] in self._going:
            return self._going[missing[0]]
        scheduler.pool.lease(found)
        fill.found = found
        self.extend(fill)
        if fill.blanks and not fill.cancelled:
            self._going[missing[0]] = fill
        else:
            if missing:
                fill.sequence.cache_miss = CacheMiss.NO_ROOM
            self.settle(fill)
        return None

    def extend(self, fill: Fill) -> None:
        """Leases some more blanks; running sequences keep room to grow by a block each."""
        scheduler = self._loop.scheduler
        room = max(0, scheduler.pool.available - len(scheduler.running))
        lacking = len(fill.missing) - len(fill.blanks)
        fill.blanks += scheduler.pool.lease_blank(min(lacking, room, PORTION))

    def settle(self, fill: Fill) -> None:
        """Publishes what came, ends the leases, and lets the sequence in if it still is wanted."""
        pool, sequence = self._loop.scheduler.pool, fill.sequence
        missing = fill.missing
        if missing and self._going.get(missing[0]) is fill:
            del self._going[missing[0]]
        for block, address, tier in zip(fill.blanks, missing, fill.tiers, strict=False):
            pool.publish(block, address)
            sequence.fetched[address] = tier
        pool.end_lease(fill.found + fill.blanks)
        fill.found, fill.blanks = [], []
        if not fill.cancelled and not fill.entered:
            fill.entered = True
            sequence.fetch_us = (time.monotonic_ns() - fill.began_ns) // 1000
            self._loop.add(sequence)
