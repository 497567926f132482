"""Memory for records on their way to a store."""

from __future__ import annotations

from collections import deque
from mmap import mmap

from services.engine.kv.record import HEADER_BYTES

KEPT_BYTES = 32 * 2**20
"""Of rooms that nobody uses: new pages take the system longer than filling them."""


class RecordRooms:
    """Rooms that are used again. For any thread.

    Args:
        block_bytes: of the payload that follows the header.
    """

    def __init__(self, block_bytes: int) -> None:
        self._size = HEADER_BYTES + block_bytes
        self._kept = max(1, KEPT_BYTES // self._size)
        self._free: deque[memoryview] = deque()

    def take(self) -> memoryview:
        """Room for a record, which holds anything."""
        try:
            return self._free.pop()
        except IndexError:
            # Its pages come when they are filled, in a copy that no other thread waits for.
            return memoryview(mmap(-1, self._size))

    def give_back(self, room: memoryview) -> None:
        """Nothing reads it any more."""
        if len(self._free) < self._kept:
            self._free.append(room)
