"""Copies of lent blocks where others can read them from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.engine.kv.leases import Lease
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import checksum
from services.engine.kv.staging import Staging


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """Where blocks lie: one offset and one checksum for each, in order."""

    session: str
    block_bytes: int
    offsets: Sequence[int]
    checksums: Sequence[bytes]


class Shelf:
    """Puts copies into a part of the staging memory.

    Args:
        layout: its digest.
    """

    def __init__(self, memory: BlockMemory, staging: Staging, layout: bytes) -> None:
        self._memory = memory
        self._staging = staging
        self._layout = layout

    def lend(self, most: int) -> Lease | None:
        """Room for at most so many copies, until the lease ends."""
        return self._staging.lend(most)

    def copied(self, blocks: Lease, slots: Lease, addresses: Sequence[bytes]) -> Region:
        """Copies as many leased blocks as there are slots; for a worker thread.

        Raises:
            LeaseEnded: before anything was copied.
        """
        with blocks.reading(), slots.reading():
            pairs = list(zip(blocks.blocks, slots.blocks, strict=False))
            for block, slot in pairs:
                self._memory.read_into(block, self._staging.room(slot))
            rooms = [self._staging.room(slot) for slot in slots.blocks]
            return Region(
                session=self._staging.transport.session,
                block_bytes=self._staging.block_bytes,
                offsets=self._staging.offsets(slots.blocks),
                checksums=[
                    checksum(address, self._layout, room)
                    for address, room in zip(addresses, rooms, strict=False)
                ],
            )
