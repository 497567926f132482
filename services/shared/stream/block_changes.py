"""Changes of a set of addresses since they were last taken."""

from __future__ import annotations

from collections.abc import Iterable


class BlockChanges:
    """Each address once, as what became of it in the end.

    One that was stored and dropped again, or the other way round, is as it was and leaves no trace;
    so `stored` holds at most what can be found now, and `dropped` what could be found before.
    """

    __slots__ = ("dropped", "stored")

    def __init__(self, stored: Iterable[bytes] = ()) -> None:
        self.stored: dict[bytes, None] = dict.fromkeys(stored)
        self.dropped: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self.stored) + len(self.dropped)

    def store(self, address: bytes) -> None:
        if address in self.dropped:
            del self.dropped[address]
        else:
            self.stored[address] = None

    def drop(self, address: bytes) -> None:
        if address in self.stored:
            del self.stored[address]
        else:
            self.dropped[address] = None
