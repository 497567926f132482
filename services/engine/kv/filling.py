"""Brings blocks of prompts into the pool before the step loop gets the prompts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from services.engine import sequence as state
from services.engine.asking import asked
from services.engine.giving_way import give_way
from services.engine.kv.blanks import Blanks
from services.engine.kv.figures import Figures
from services.engine.kv.fill import Fill
from services.engine.kv.fill_desk import FillDesk
from services.engine.kv.landing import Landing
from services.engine.kv.memory import BlockMemory
from services.engine.kv.supply import Supply, Wanted
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.engine.loop import EngineLoop
from services.shared.tasks import Tasks

COPIERS = 2
"""Threads that copy what came into the pool."""


class Filler:
    """An entry to the step loop by way of the supplies; see `services.engine.entry`.

    A sequence whose blocks are all in the pool, or that no supply has anything for, enters at once.
    Whatever becomes of the others' blocks, they enter too, and compute what has not come.

    Args:
        supplies: the nearest first.
        tasks: that end before `close` is called.
    """

    def __init__(
        self,
        loop: EngineLoop,
        memory: BlockMemory,
        supplies: Sequence[Supply],
        *,
        figures: Figures,
        switch: CacheSwitch,
        tasks: Tasks,
    ) -> None:
        self._loop = loop
        self._memory = memory
        self._supplies = supplies
        self._figures = figures
        self._switch = switch
        self._tasks = tasks
        self._desk = FillDesk(loop)
        self._copiers = ThreadPoolExecutor(COPIERS, "kv-copy", give_way)
        self._fills: dict[int, tuple[Fill, asyncio.Task[None]]] = {}

    @property
    def fetches_blocks(self) -> bool:
        has_peers = any(supply.tier is Tier.PEER for supply in self._supplies)
        return has_peers and self._switch.enabled

    @property
    def waiting(self) -> Iterable[state.Sequence]:
        return (fill.sequence for fill, _ in self._fills.values() if not fill.entered)

    def coming(self) -> Iterable[state.Sequence]:
        """Those whose blocks are being brought; for the step loop's thread."""
        return self._desk.coming()

    def add(self, sequence: state.Sequence) -> None:
        fill = self._fill_for(sequence)
        if fill is None:
            self._loop.command(partial(self._loop.add, sequence))
            return
        task = self._tasks.start("fill", self._fill(fill))
        self._fills[sequence.key] = fill, task
        task.add_done_callback(lambda _: self._fills.pop(sequence.key))

    def drop(self, sequence: state.Sequence) -> None:
        """Ends its fill at once; its blanks go back when nothing writes into them any more."""
        if sequence.key in self._fills:
            fill, task = self._fills[sequence.key]
            fill.cancelled = True
            task.cancel()

    def close(self) -> None:
        """Returns when nothing is written into the pool any more."""
        self._copiers.shutdown()

    def _fill_for(self, sequence: state.Sequence) -> Fill | None:
        """None if nothing could come for it."""
        generation = sequence.generation
        if not generation.cache.read or not self._supplies:
            return None
        addresses = sequence.usable_addresses(self._loop.scheduler.pool.size)
        if not addresses:
            return None
        wanted = Wanted.by(generation, addresses)
        if not any(supply.can_supply(wanted) for supply in self._supplies):
            return None
        return Fill(sequence, list(addresses))

    async def _fill(self, fill: Fill) -> None:
        blanks = Blanks(fill, self._loop, self._desk)
        landing = Landing(fill, blanks, self._memory, self._copiers)
        left_s = (fill.sequence.deadline_ns - time.monotonic_ns()) / 1e9
        try:
            async with asyncio.timeout(left_s):
                await self._looked(fill)
                if fill.blanks:
                    await landing.land(self._supplies, self._figures)
        except TimeoutError:
            pass  # the step loop tells whoever waits
        finally:
            self._settle(fill, landing)

    async def _looked(self, fill: Fill) -> None:
        """Returns when no other fill is about to bring the first block that is missing.

        What others have brought of it by then is found.
        """
        while True:
            other = await asked(self._loop, partial(self._desk.look, fill))
            if other is None:
                return
            await other.shared(fill.addresses)

    def _settle(self, fill: Fill, landing: Landing) -> None:
        """Even if the fill was cancelled: nothing is waited for here."""
        home = asyncio.get_running_loop()

        def settle(_: object = None) -> None:
            self._loop.command(partial(self._desk.settle, fill))
            home.call_soon_threadsafe(fill.end)

        if landing.copying is None:
            settle()
        else:
            landing.copying.add_done_callback(settle)
