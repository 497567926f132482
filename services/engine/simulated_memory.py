"""What blocks hold in an engine that computes nothing: a running hash after each token."""

from __future__ import annotations

from collections.abc import Sequence

SLOT_BYTES = 4


class SimulatedMemory:
    """Blocks of `size` slots of 32 bits, so that what moves blocks moves something."""

    def __init__(self, blocks: int, size: int) -> None:
        self.block_bytes = size * SLOT_BYTES
        self._size = size
        self._bytes = memoryview(bytearray(blocks * self.block_bytes))
        self._slots = self._bytes.cast("I")

    def read(self, block: int) -> memoryview:
        start = block * self.block_bytes
        return memoryview(bytes(self._bytes[start : start + self.block_bytes]))

    def read_into(self, block: int, buffer: memoryview) -> None:
        start = block * self.block_bytes
        buffer[:] = self._bytes[start : start + self.block_bytes]

    def write(self, block: int, payload: bytes | bytearray | memoryview) -> None:
        start = block * self.block_bytes
        self._bytes[start : start + self.block_bytes] = memoryview(payload).cast("B")

    def state(self, blocks: Sequence[int], index: int) -> int:
        """What a sequence of these blocks has after its token `index`."""
        return self._slots[blocks[index // self._size] * self._size + index % self._size]

    def note(self, blocks: Sequence[int], index: int, state: int) -> None:
        self._slots[blocks[index // self._size] * self._size + index % self._size] = state
