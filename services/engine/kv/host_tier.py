"""Blocks that the pool gave up, in memory of the engine's machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from threading import Lock

from services.engine.eviction import EvictionOrder
from services.engine.kv.figures import TierFigures
from services.engine.kv.memory import BlockMemory
from services.engine.kv.ready_memory import ReadyMemory
from services.engine.kv.supply import AT_ONCE, Given, Wanted
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.events import CacheMiss


@dataclass(slots=True, eq=False)
class _Kept:
    """A block's bytes. Its buffer is not used again while somebody reads it."""

    buffer: memoryview
    readers: int = 0
    dropped: bool = False


class HostTier:
    """Keeps as many blocks as there is room for; what was used longest ago gives way.

    Pinned blocks and tenants have their shares, as in the pool. A block that is taken from here
    stays here.

    Args:
        memory: what the pool's blocks hold.
        max_bytes: at least those of one block.
    """

    tier = Tier.HOST

    def __init__(self, memory: BlockMemory, max_bytes: int, figures: TierFigures) -> None:
        self._memory = memory
        self._figures = figures
        self._lock = Lock()
        self._kept: dict[bytes, _Kept] = {}
        self._blocks = max_bytes // memory.block_bytes
        self._order: EvictionOrder[bytes] = EvictionOrder(self._blocks)
        self._room = ReadyMemory(max_bytes, memory.block_bytes)

    def keep(self, block: int, address: bytes, tenant: str = "", *, pinned: bool = False) -> None:
        """Copies a block that gives way in the pool. For the step loop's thread.

        It waits for no memory: if there is none at once, the oldest block gives its own. What is
        pinned gives way last, up to a share of the tier.
        """
        with self._lock:
            if address in self._kept:
                self._use(address, pinned=pinned)
                self._figures.skip(Skip.PRESENT)
                return
            buffer = self._room.take() or self._oldest()
        if buffer is None:
            self._figures.skip(Skip.QUEUE_FULL)
            return
        self._memory.read_into(block, buffer)
        with self._lock:
            self._kept[address] = _Kept(buffer)
            self._order.add(address, tenant)
            if pinned:
                self._order.pin(address)
        self._figures.wrote(1, len(buffer))

    def can_supply(self, wanted: Wanted) -> bool:
        return any(address in self._kept for address in wanted.addresses)

    async def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        at, addresses = 0, wanted.addresses
        while at < len(addresses):
            kept = self._opened(addresses[at : at + AT_ONCE])
            if not kept:
                self._figures.miss(CacheMiss.ABSENT, len(addresses) - at)
                yield CacheMiss.ABSENT
                return
            at += len(kept)
            buffers = [one.buffer for one in kept]
            self._figures.hit(len(buffers), sum(map(len, buffers)))
            try:
                yield buffers
            finally:
                self._close(kept)

    def clear(self) -> int:
        """Drops all blocks and tells how many."""
        with self._lock:
            dropped = list(self._kept.values())
            self._kept.clear()
            self._order = EvictionOrder(self._blocks)
            for kept in dropped:
                kept.dropped = True
                if not kept.readers:
                    self._room.give_back(kept.buffer)
        return len(dropped)

    def close(self) -> None:
        """Keeps nothing more."""
        self._room.close()

    def _oldest(self) -> memoryview | None:
        """The buffer of the block that was used longest ago and that nobody reads."""
        for address in self._order:
            if not self._kept[address].readers:
                self._order.remove(address)
                self._order.unpin(address)
                return self._kept.pop(address).buffer
        return None

    def _use(self, address: bytes, *, pinned: bool = False) -> None:
        self._order.add(address, self._order.remove(address))
        if pinned or self._order.is_pinned(address):
            self._order.pin(address)

    def _opened(self, addresses: Sequence[bytes]) -> list[_Kept]:
        """Those up to the first that is not there."""
        opened = []
        with self._lock:
            for address in addresses:
                kept = self._kept.get(address)
                if kept is None:
                    break
                self._use(address)
                kept.readers += 1
                opened.append(kept)
        return opened

    def _close(self, opened: Sequence[_Kept]) -> None:
        with self._lock:
            for kept in opened:
                kept.readers -= 1
                if kept.dropped and not kept.readers:
                    self._room.give_back(kept.buffer)
