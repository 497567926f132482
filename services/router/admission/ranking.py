"""Keys in the order of a number that each has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Generic, TypeVar

K = TypeVar("K")

_rank = itemgetter(0)


class Ranking(Generic[K]):
    """The least number first, and among equal ones the key that came first.

    A sorted list: finding a place takes O(log n) comparisons, and making it moves a block of
    memory, which for some thousand keys costs less than a heap's bookkeeping.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, K]] = []
        self._of: dict[K, tuple[float, int, K]] = {}
        self._came = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._of

    def __iter__(self) -> Iterator[K]:
        return (key for _, _, key in self._entries)

    def __getitem__(self, key: K) -> float:
        return self._of[key][0]

    def get(self, key: K, otherwise: float) -> float:
        known = self._of.get(key)
        return otherwise if known is None else known[0]

    def place(self, key: K, rank: float) -> None:
        """Adds a key or gives it another number."""
        known = self._of.get(key)
        if known is None:
            entry = (rank, self._came, key)
            self._came += 1
        else:
            entry = (rank, known[1], key)
            del self._entries[bisect_left(self._entries, known)]
        self._of[key] = entry
        insort(self._entries, entry)

    def remove(self, key: K) -> None:
        """Does nothing with a key that is not there."""
        known = self._of.pop(key, None)
        if known is not None:
            del self._entries[bisect_left(self._entries, known)]

    def first(self) -> K | None:
        return self._entries[0][2] if self._entries else None

    def last(self) -> K | None:
        return self._entries[-1][2] if self._entries else None

    def up_to(self, rank: float) -> int:
        """How many keys have this number or a lesser one."""
        return bisect_right(self._entries, rank, key=_rank)

    def sample(self, count: int, most: int) -> list[K]:
        """Of the first `count` keys at most `most`, evenly."""
        return [key for _, _, key in self._entries[: count : max(1, -(-count // most))]]
