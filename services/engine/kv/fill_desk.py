"""Where fills meet the step loop: leases for what comes, and the way in for their sequences."""

from __future__ import annotations

import time
from collections.abc import Iterator

from services.engine.kv.fill import Fill
from services.engine.loop import EngineLoop
from services.engine.sequence import Sequence
from services.shared.stream.events import CacheMiss

PORTION = 32
"""Blanks that are leased between two steps: each may have to be copied to host memory before."""


class FillDesk:
    """Leases a fill's blocks and lets its sequence in. All for the step loop's thread.

    Only one fill at a time brings a block; another that lacks it first waits for that one.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop
        self._going: dict[bytes, Fill] = {}
        self._fills: dict[Fill, None] = {}

    def coming(self) -> Iterator[Sequence]:
        """Sequences whose blocks are on their way."""
        return (fill.sequence for fill in self._fills)

    def look(self, fill: Fill) -> Fill | None:
        """Leases what is found and some blanks; gives the fill to wait for instead.

        If nothing is missing or there is no room, the sequence enters.
        """
        pool = self._loop.scheduler.pool
        found = pool.match(fill.addresses)
        while (other := self._bringing(fill, found)) is not None:
            self._publish(other)
            more = pool.match(fill.addresses)
            if more == found:
                return other
            found = more
        pool.lease(found)
        fill.found = found
        self.extend(fill)
        if fill.blanks and not fill.cancelled:
            self._going.update(dict.fromkeys(fill.missing, fill))
            self._fills[fill] = None
        else:
            if fill.missing:
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
        for address in fill.missing:
            if self._going.get(address) is fill:
                del self._going[address]
        self._fills.pop(fill, None)
        self._publish(fill)
        pool.end_lease(fill.found + fill.blanks)
        fill.found, fill.blanks = [], []
        if not fill.cancelled and not fill.entered:
            fill.entered = True
            sequence.fetch_us = (time.monotonic_ns() - fill.began_ns) // 1000
            self._loop.add(sequence)

    def _bringing(self, fill: Fill, found: list[int]) -> Fill | None:
        """The fill that brings the block that is missing after those."""
        missing = fill.addresses[len(found) :]
        return self._going.get(missing[0]) if missing else None

    def _publish(self, fill: Fill) -> None:
        """Makes what has come until now findable."""
        pool, sequence = self._loop.scheduler.pool, fill.sequence
        for block, address, tier in zip(fill.blanks, fill.missing, fill.tiers, strict=False):
            pool.publish(block, address, sequence.tenant)
            sequence.fetched[address] = tier
