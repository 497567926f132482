"""The memory that blocks lie in, as seen by what moves them."""

from __future__ import annotations

from typing import Protocol

from services.engine.kv.record import Payload


class BlockMemory(Protocol):
    """Reads and writes whole blocks. For any thread, while the block is leased.

    Attributes:
        block_bytes: of one block, all layers together.
    """

    @property
    def block_bytes(self) -> int: ...

    def read(self, block: int) -> memoryview:
        """A copy of the block's bytes, of format `B`."""

    def read_into(self, block: int, buffer: memoryview) -> None:
        """Copies the block's bytes to where there is room for them.

        A buffer that was used before saves the time that the system takes for new memory.
        """

    def write(self, block: int, payload: Payload) -> None:
        """Fills the block; `payload` has `block_bytes`."""
