"""Copies of leased blocks, some at a time, for one reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.engine.kv.leases import Lease
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import checksum

READ_BYTES = 2**20
READ_BLOCKS = 256
"""What is read at a time: as many blocks as fit, and at least one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LentBlock:
    """A copy of a block; `index` is its place in the chain that was asked for.

    The memory of `payload` is used again for the next ones.
    """

    index: int
    payload: memoryview
    checksum: bytes


class Copies:
    """Reads into a buffer of its own; that it is used before spares the system new pages.

    Args:
        layout: its digest.
    """

    def __init__(self, memory: BlockMemory, layout: bytes) -> None:
        self._memory = memory
        self._layout = layout
        size = memory.block_bytes
        self._at_once = max(1, min(READ_BYTES // size, READ_BLOCKS))
        buffer = memoryview(bytearray(self._at_once * size))
        self._rooms = [buffer[at : at + size] for at in range(0, len(buffer), size)]

    def portions(self, count: int) -> Iterator[range]:
        """Cuts `count` blocks into what is read at a time."""
        for at in range(0, count, self._at_once):
            yield range(at, min(at + self._at_once, count))

    def read(
        self, lease: Lease, addresses: Sequence[bytes], first: int, portion: range
    ) -> list[LentBlock]:
        """The blocks of a portion of a lease; for a worker thread.

        Its blocks have these addresses, and the first of them is at `first` in the chain.

        Raises:
            LeaseEnded: nothing was read.
        """
        rooms = self._rooms[: len(portion)]
        with lease.reading():
            for place, room in zip(portion, rooms, strict=True):
                self._memory.read_into(lease.blocks[place], room)
        return [
            LentBlock(
                index=first + place,
                payload=room,
                checksum=checksum(addresses[place], self._layout, room),
            )
            for place, room in zip(portion, rooms, strict=True)
        ]
