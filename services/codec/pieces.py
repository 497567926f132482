"""Token IDs of pieces of text, kept for the next prompt that has the same pieces."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable
from sys import getsizeof
from threading import Lock

# What a dictionary entry and its two objects take besides text and IDs.
_ENTRY_BYTES = 200


class PieceCache:
    """The last used pieces within a memory limit. Thread-safe.

    Args:
        encode: gives the IDs of a piece; it runs outside the lock.
        limit_bytes: memory for pieces and IDs; 0 keeps nothing.
    """

    def __init__(self, encode: Callable[[str], list[int]], limit_bytes: int) -> None:
        self._encode = encode
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[str, array[int]] = OrderedDict()
        self._lock = Lock()
        self.used_bytes = 0
        self.hits = 0
        self.misses = 0

    def ids(self, piece: str) -> array[int]:
        """IDs of the piece; the caller must not change them."""
        with self._lock:
            known = self._entries.get(piece)
            if known is not None:
                self._entries.move_to_end(piece)
                self.hits += 1
                return known
            self.misses += 1
        ids = array("I", self._encode(piece))
        self._keep(piece, ids)
        return ids

    def _keep(self, piece: str, ids: array[int]) -> None:
        if _size(piece, ids) > self._limit_bytes:
            return
        with self._lock:
            # Another thread may have encoded the same piece meanwhile.
            if piece in self._entries:
                return
            self._entries[piece] = ids
            self.used_bytes += _size(piece, ids)
            while self.used_bytes > self._limit_bytes:
                self.used_bytes -= _size(*self._entries.popitem(last=False))


def _size(piece: str, ids: array[int]) -> int:
    return getsizeof(piece) + getsizeof(ids) + _ENTRY_BYTES
