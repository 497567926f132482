"""Writes blocks to the service cache, behind the steps that computed them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from queue import SimpleQueue
from threading import Thread

from services.engine.giving_way import give_way
from services.engine.kv.cache_settings import WriteSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.line import taken_from
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import HEADER_BYTES
from services.engine.kv.record_rooms import RecordRooms
from services.engine.kv.record_writer import Copy, RecordWriter
from services.engine.kv.records import Records
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Skip
from services.engine.kv.worth import Worth
from services.engine.loop import EngineLoop
from services.engine.sequence import Sequence
from services.shared.stream.events import CacheMiss

LEASED_SHARE = 2
"""At most one block of the pool in so many waits to be copied."""

CLOSE_S = 5.0


class WriteBehind:
    """A keeper that leases what is worth writing until it has been copied.

    One thread copies, another one writes the copies: a store that hangs holds no block. What does
    not find room in the queue is left out and counted.
    """

    def __init__(
        self,
        loop: EngineLoop,
        memory: BlockMemory,
        records: Records,
        rules: WriteSettings,
        *,
        switch: CacheSwitch,
        figures: TierFigures,
    ) -> None:
        self._loop = loop
        self._pool = loop.scheduler.pool
        self._memory = memory
        self._switch = switch
        self._figures = figures
        self._worth = Worth(rules.prefix_tokens, self._pool.size)
        self._most_pending = rules.queue_blocks
        self._most_leases = max(1, self._pool.count // LEASED_SHARE)
        self._leases = 0
        self._pending: set[bytes] = set()
        self._closed = False
        self._leased: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._rooms = RecordRooms(memory.block_bytes)
        self._writer = RecordWriter(records, self._rooms, switch, figures, self._written)
        self._copier = Thread(target=self._copy, name="cache-copy", daemon=True)
        self._copier.start()
        switch.listen(self._switched)

    def filled(self, sequence: Sequence, indices: range) -> None:
        if not sequence.generation.cache.write:
            return
        worth = min(self._worth.leading(sequence.generation), indices.stop)
        self._figures.skip(Skip.NOT_WORTH, indices.stop - max(worth, indices.start))
        self._offer(sequence, range(indices.start, worth))

    def placed(self, sequence: Sequence, found: int) -> None:
        """Switched off, it also notes what the service cache was not asked for."""
        if sequence.preemptions:
            return  # it finds its own blocks, which is no second use
        cache = sequence.generation.cache
        if cache.write and found:
            self._offer(sequence, self._worth.again(sequence, found))
        if cache.read and not self._switch.enabled:
            missing = len(sequence.usable_addresses(self._pool.size)) - found
            if missing:
                sequence.cache_miss = CacheMiss.OFF
                self._figures.miss(CacheMiss.OFF, missing)

    def drop(self, cause: Skip) -> None:
        """Leaves out all that waits, and takes no block for stored any more. On any thread."""
        self._loop.command(self._worth.forget)
        dropped = taken_from(self._leased)
        if dropped:
            blocks, addresses = zip(*dropped, strict=True)
            self._loop.command(partial(self._end_leases, blocks))
            self._written(list(addresses), [])
            self._figures.skip(cause, len(dropped))
        self._writer.drop(cause)

    async def quiet(self, timeout_s: float) -> bool:
        """Switched off: whether within this time no write is on its way any more."""
        return await asyncio.to_thread(self._writer.quiet, timeout_s)

    async def close(self) -> bool:
        """Writes what waits, for five seconds; the rest is dropped and counted as failed.

        Gives whether the last call to the store has come back: only then may it be closed.
        """
        self._closed = True
        self._leased.put(None)
        return await asyncio.to_thread(self._writer.join, CLOSE_S)

    def _offer(self, sequence: Sequence, indices: Iterable[int]) -> None:
        """Leases what there is room for. On the step loop's thread, as all above."""
        wanted = list(indices)
        if not wanted or self._closed:
            return
        if not self._switch.enabled:
            self._figures.skip(Skip.OFF, len(wanted))
            return
        addresses = sequence.full_addresses(self._pool.size)
        new = [index for index in wanted if addresses[index] not in self._pending]
        room = min(self._most_pending - len(self._pending), self._most_leases - self._leases)
        taken = new[: max(0, room)]
        self._pool.lease(sequence.blocks[index] for index in taken)
        self._leases += len(taken)
        self._pending.update(addresses[index] for index in taken)
        for index in taken:
            self._leased.put((sequence.blocks[index], addresses[index]))
        self._figures.skip(Skip.PRESENT, len(wanted) - len(new))
        self._figures.skip(Skip.QUEUE_FULL, len(new) - len(taken))

    def _written(self, addresses: list[bytes], stored: list[bytes]) -> None:
        """Of these blocks, those are in the store now. On any thread."""
        self._loop.command(partial(self._settle, addresses, stored))

    def _settle(self, addresses: list[bytes], stored: list[bytes]) -> None:
        self._pending.difference_update(addresses)
        self._worth.stored(stored)

    def _end_leases(self, blocks: tuple[int, ...]) -> None:
        self._pool.end_lease(blocks)
        self._leases -= len(blocks)

    def _copy(self) -> None:
        give_way()
        while (leased := self._leased.get()) is not None:
            block, address = leased
            room = self._rooms.take()
            self._memory.read_into(block, room[HEADER_BYTES:])
            self._loop.command(partial(self._end_leases, (block,)))
            self._writer.put(Copy(address, room))
        self._writer.close()

    def _switched(self, enabled: bool) -> None:
        if not enabled:
            self.drop(Skip.OFF)
