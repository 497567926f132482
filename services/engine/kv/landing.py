"""Brings a fill's blocks into its blanks, from one supply after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing

from services.engine.kv.figures import Figures
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

    def __init__(self, fill: Fill, memory: BlockMemory, copiers: ThreadPoolExecutor) -> None:
        self._fill = fill
        self._memory = memory
        self._copiers = copiers
        self.copying: Future[None] | None = None

    async def land(self, supplies: Sequence[Supply], figures: Figures) -> None:
        """Asks each supply for what those before had not got; a supply with a bug has nothing."""
        last: Tier | None = None
        for supply in supplies:
            wanted = self._wanted()
            if wanted is None:
                break
            if supply.can_supply(wanted):
                last = supply.tier
                began_s = time.monotonic()
                await self._take(supply, wanted)
                figures[last].read(time.monotonic() - began_s)
        beyond = len(self._fill.missing) - len(self._fill.blanks)
        if beyond and last is not None and self._wanted() is None:
            self._fill.sequence.cache_miss = CacheMiss.NO_ROOM
            figures[last].miss(CacheMiss.NO_ROOM, beyond)

    def _wanted(self) -> Wanted | None:
        """What is still to come."""
        fill = self._fill
        addresses = fill.missing[len(fill.tiers) : len(fill.blanks)]
        if not addresses:
            return None
        return Wanted(addresses=addresses, peer=fill.sequence.generation.routing.prefill_peer)

    async def _take(self, supply: Supply, wanted: Wanted) -> None:
        sequence = self._fill.sequence
        left, miss = len(wanted.addresses), CacheMiss.ABSENT
        try:
            async with aclosing(supply.supply(wanted)) as given:
                while left:
                    part = await anext(given, miss)
                    if isinstance(part, CacheMiss):
                        miss = part
                        break
                    await self._copy(part)
                    self._fill.tiers.append(supply.tier)
                    left -= 1
        except Exception:  # noqa: BLE001  # what does not come is computed
            miss = CacheMiss.UNREACHABLE
            _log.exception("a supply failed", extra={"fields": {"tier": supply.tier}})
        sequence.cache_miss = miss if left else None

    async def _copy(self, payload: memoryview) -> None:
        block = self._fill.blanks[len(self._fill.tiers)]
        self.copying = self._copiers.submit(self._memory.write, block, payload)
        await asyncio.wrap_future(self.copying)
