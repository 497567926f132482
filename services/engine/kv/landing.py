"""Brings a fill's blocks into its blanks, from one supply after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing

from services.engine.kv.blanks import Blanks
from services.engine.kv.figures import Figures, TierFigures
from services.engine.kv.fill import Fill
from services.engine.kv.memory import BlockMemory
from services.engine.kv.supply import Supply, Wanted
from services.engine.kv.tier import Tier
from services.shared.stream.events import CacheMiss

_log = logging.getLogger(__name__)


class Landing:
    """One fill's.

    Attributes:
        copying: the last copy into a blank, which is written until this is done.
    """

    def __init__(
        self, fill: Fill, blanks: Blanks, memory: BlockMemory, copiers: ThreadPoolExecutor
    ) -> None:
        self._fill = fill
        self._blanks = blanks
        self._memory = memory
        self._copiers = copiers
        self.copying: Future[None] | None = None

    async def land(self, supplies: Sequence[Supply], figures: Figures) -> None:
        """Asks each supply for what those before had not got; a supply with a bug has nothing."""
        for supply in supplies:
            wanted = self._wanted()
            if wanted is None or self._fill.sequence.cache_miss is CacheMiss.NO_ROOM:
                return
            if supply.can_supply(wanted):
                began_s = time.monotonic()
                await self._take(supply, wanted, figures[supply.tier])
                figures[supply.tier].read(time.monotonic() - began_s)

    def _wanted(self) -> Wanted | None:
        """What is still to come."""
        fill = self._fill
        addresses = fill.missing[len(fill.tiers) :]
        if not addresses:
            return None
        return Wanted.by(fill.sequence.generation, addresses)

    async def _take(self, supply: Supply, wanted: Wanted, figures: TierFigures) -> None:
        sequence, before = self._fill.sequence, len(self._fill.tiers)
        try:
            async with aclosing(supply.supply(wanted)) as given:
                sequence.cache_miss = await self._land(given, supply.tier, len(wanted.addresses))
        except Exception:  # noqa: BLE001  # what does not come is computed
            sequence.cache_miss = CacheMiss.UNREACHABLE
            _log.exception("a supply failed", extra={"fields": {"tier": supply.tier}})
        if sequence.cache_miss is CacheMiss.NO_ROOM:
            landed = len(self._fill.tiers) - before
            figures.miss(CacheMiss.NO_ROOM, len(wanted.addresses) - landed)

    async def _land(
        self, given: AsyncGenerator[memoryview | CacheMiss, None], tier: Tier, number: int
    ) -> CacheMiss | None:
        """Takes so many blocks, or tells why the next one does not come."""
        for _ in range(number):
            block = await self._blanks.next()
            if block is None:
                return CacheMiss.NO_ROOM
            part = await anext(given, CacheMiss.ABSENT)
            if isinstance(part, CacheMiss):
                return part
            self.copying = self._copiers.submit(self._memory.write, block, part)
            await asyncio.wrap_future(self.copying)
            self._fill.landed(tier)
        return None
