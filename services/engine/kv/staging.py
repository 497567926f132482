"""Memory that other engines may read or that is read into: copies of single blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial

from services.engine.kv.leases import Lease
from services.engine.kv.memory_transport import MemoryTransport


class Staging:
    """Slots for blocks, each of them free or under a lease.

    What others may read is never the pool itself: a transport that knows no identity can spoil
    nothing but copies, and a spoilt copy does not fit its checksum.

    Args:
        block_bytes: of each slot.
        max_bytes: of all of them; room for one block at least.
    """

    def __init__(self, transport: MemoryTransport, block_bytes: int, max_bytes: int) -> None:
        count = max_bytes // block_bytes
        self.transport = transport
        self.block_bytes = block_bytes
        self._memory = memoryview(bytearray(count * block_bytes))
        self._first = transport.register(self._memory)
        self._free = deque(range(count))

    @property
    def free(self) -> int:
        return len(self._free)

    def lend(self, most: int) -> Lease | None:
        """A lease on at most so many slots, which are free again after it; None if on none.

        For one thread; leases end on any.
        """
        slots = [self._free.popleft() for _ in range(min(most, len(self._free)))]
        return Lease(slots, partial(self._free.extend, slots)) if slots else None

    def room(self, slot: int) -> memoryview:
        return self._memory[slot * self.block_bytes : (slot + 1) * self.block_bytes]

    def offsets(self, slots: Sequence[int]) -> list[int]:
        """Where slots begin, as the transport names it."""
        return [self._first + slot * self.block_bytes for slot in slots]
