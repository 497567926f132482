"""What blocks hold in a simulated engine, as bytes that can be moved."""

from __future__ import annotations

from array import array
from collections.abc import Callable

from services.engine.blocks import BlockPool
from tests.simulation.kv import Blocks

SLOT_BYTES = 8
EMPTY = -1


class KvMemory:
    """The blocks of a runner; each slot is a whole number of eight bytes.

    Args:
        pool: that keeps the books; what is read or written must be leased there.
        wrong: told of a block that is not.
    """

    def __init__(self, blocks: Blocks, pool: BlockPool, wrong: Callable[[str], None]) -> None:
        self._blocks = blocks
        self._pool = pool
        self._wrong = wrong
        self.block_bytes = SLOT_BYTES * len(blocks[0])

    def peek(self, block: int) -> bytes:
        """The block's bytes, leased or not."""
        slots = (EMPTY if slot is None else slot for slot in self._blocks[block])
        return array("q", slots).tobytes()

    def read(self, block: int) -> memoryview:
        self._check(block, "read")
        return memoryview(self.peek(block))

    def read_into(self, block: int, buffer: memoryview) -> None:
        buffer[:] = self.read(block)

    def write(self, block: int, payload: bytes | bytearray | memoryview) -> None:
        self._check(block, "written")
        slots = array("q", bytes(payload))
        self._blocks[block][:] = [None if slot == EMPTY else slot for slot in slots]

    def _check(self, block: int, what: str) -> None:
        if not self._pool._leases[block]:
            self._wrong(f"block {block} is {what} and not leased")
