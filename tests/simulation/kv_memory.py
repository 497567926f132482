"""What blocks hold in a simulated engine, as bytes that can be moved."""

from __future__ import annotations

from array import array

from tests.simulation.kv import Blocks

SLOT_BYTES = 8
EMPTY = -1


class KvMemory:
    """The blocks of a runner; each slot is a whole number of eight bytes."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.block_bytes = SLOT_BYTES * len(blocks[0])

    def read(self, block: int) -> memoryview:
        slots = (EMPTY if slot is None else slot for slot in self._blocks[block])
        return memoryview(array("q", slots).tobytes())

    def read_into(self, block: int, buffer: memoryview) -> None:
        buffer[:] = self.read(block)

    def write(self, block: int, payload: bytes | bytearray | memoryview) -> None:
        slots = array("q", bytes(payload))
        self._blocks[block][:] = [None if slot == EMPTY else slot for slot in slots]
