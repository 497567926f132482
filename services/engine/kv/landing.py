"""Brings a fill's blocks into its blanks, from one supply after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing

from services.engine.kv.blanks import Blanks
from services.engine.kv.figures import Figures, TierFigures
from services.engine.kv.fill import Fill
from services.engine.kv.memory import BlockMemory
from services.engine.kv.supply import Given, Supply, Wanted
from services.engine.kv.tier import Tier
from services.shared.stream.events import CacheMiss

_log = logging.getLogger(__name__)


class Landing:
    """One fill's.

    Attributes:
        copying: the last copy into blanks, which are written until this is done.
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
        sequence, left = self._fill.sequence, len(wanted.addresses)
        try:
            async with aclosing(supply.supply(wanted)) as given:
                sequence.cache_miss = await self._land(given, supply.tier, left, figures)
        except Exception:  # noqa: BLE001  # what does not come is computed
            sequence.cache_miss = CacheMiss.UNREACHABLE
            _log.exception("a supply failed", extra={"fields": {"tier": supply.tier}})

    async def _land(
        self, given: AsyncGenerator[Given, None], tier: Tier, left: int, figures: TierFigures
    ) -> CacheMiss | None:
        """Takes what is left, or tells why the next block does not come; counts want of room."""
        while left:
            if await self._blanks.next(1):
                part = await anext(given, CacheMiss.ABSENT)
                if isinstance(part, CacheMiss):
                    return part
                left -= len(part)
                if await self._copy(part, tier) == len(part):
                    continue
            figures.miss(CacheMiss.NO_ROOM, left)
            return CacheMiss.NO_ROOM
        return None

    async def _copy(self, blocks: Sequence[memoryview], tier: Tier) -> int:
        """Copies as many as there is room for, and tells how many."""
        blanks = await self._blanks.next(len(blocks))
        self.copying = self._copiers.submit(self._write, zip(blanks, blocks, strict=False))
        await asyncio.wrap_future(self.copying)
        self._fill.landed(tier, len(blanks))
        return len(blanks)

    def _write(self, pairs: Iterable[tuple[int, memoryview]]) -> None:
        """For a copier's thread."""
        for blank, block in pairs:
            self._memory.write(blank, block)
