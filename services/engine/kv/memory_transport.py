"""Ways to read another engine's memory, without a stream between."""

from __future__ import annotations

from typing import Protocol


class MemoryTransport(Protocol):
    """Reads what another process has registered. For any thread; calls may block.

    Attributes:
        session: names this process to others, for example host:port.
    """

    @property
    def session(self) -> str: ...

    def register(self, memory: memoryview) -> int:
        """Lets others read this memory, and this process read into it; where its first byte is."""

    def read(self, session: str, offset: int, into: int, size: int) -> bool:
        """Copies from another's registered memory into ours; tells whether it did.

        Args:
            session: of the other.
            offset: where the first byte is there.
            into: where it is to be here.
            size: bytes.
        """
