"""Blocks put together from the parts that a peer sends; what is not as it must be is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.engine.kv.record import checksum


class BadPart(Exception):
    """A part that no honest lender sends; nothing that follows it is of use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Bytes of a block that follow those before; with the last ones comes the checksum."""

    index: int
    data: bytes
    checksum: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeBlock:
    """All bytes of the block at `address`, and the checksum that came with them."""

    address: bytes
    payload: memoryview
    checksum: bytes

    def is_sound(self, layout: bytes) -> bool:
        """Whether these are the bytes of that block; a digest of the layout is given."""
        return checksum(self.address, layout, self.payload) == self.checksum


class PeerBlocks:
    """Takes the parts of one stream, in their order. Keeps one block at most.

    Args:
        addresses: of the wanted blocks.
        block_bytes: of each of them.
    """

    def __init__(self, addresses: Sequence[bytes], block_bytes: int) -> None:
        self._addresses = addresses
        self._block_bytes = block_bytes
        self._at = 0
        self._begun: bytearray | None = None

    def take(self, part: Part) -> WholeBlock | None:
        """The block that this part completes, if it does; it is not checked yet.

        Raises:
            BadPart: another block's, of no bytes, too long, or without its checksum.
        """
        if part.index != self._at or self._at >= len(self._addresses):
            raise BadPart(f"a part of block {part.index} instead of block {self._at}")
        payload = self._payload(part)
        if (part.checksum is None) is (len(payload) == self._block_bytes):
            raise BadPart(f"block {part.index} has {len(payload)} bytes at its checksum")
        if part.checksum is None:
            return None
        self._at += 1
        self._begun = None
        return WholeBlock(
            address=self._addresses[part.index], payload=payload, checksum=part.checksum
        )

    def _payload(self, part: Part) -> memoryview:
        """All bytes of the block so far; those of a block in one part are not copied."""
        before = 0 if self._begun is None else len(self._begun)
        if not part.data or before + len(part.data) > self._block_bytes:
            raise BadPart(f"block {part.index} goes on by {len(part.data)} bytes after {before}")
        if self._begun is None:
            if part.checksum is not None:
                return memoryview(part.data)
            self._begun = bytearray()
        self._begun += part.data
        return memoryview(self._begun)
