"""Token IDs of pieces of text, kept for the next prompt that has the same pieces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from sys import getsizeof
from threading import Lock

# What a dictionary entry and its objects take besides text and IDs.
_ENTRY_BYTES = 260


class PieceCache:
    """The last used pieces within a memory limit. Thread-safe.

    Owners share the limit and find nothing of each other's: how fast a text is encoded would tell
    one that another has sent it.

    Args:
        encode: gives the IDs of each of some pieces, the same objects each time; it runs outside
            the lock.
        limit_bytes: memory for pieces and IDs; 0 keeps nothing.
    """

    def __init__(
        self, encode: Callable[[Sequence[str]], Sequence[list[int]]], limit_bytes: int
    ) -> None:
        self._encode = encode
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[tuple[str, str], list[int]] = OrderedDict()
        self._lock = Lock()
        self.used_bytes = 0
        self.hits = 0
        self.misses = 0

    def ids(self, pieces: Iterable[str], owner: str = "") -> dict[str, list[int]]:
        """IDs of each piece, the unknown ones encoded together; the caller must not change them."""
        wanted = dict.fromkeys(pieces)
        with self._lock:
            found = ((piece, self._entries.get((owner, piece))) for piece in wanted)
            known = {piece: ids for piece, ids in found if ids is not None}
            for piece in known:
                self._entries.move_to_end((owner, piece))
            unknown = [piece for piece in wanted if piece not in known]
            self.hits += len(known)
            self.misses += len(unknown)
        if not unknown:
            return known
        new = dict(zip(unknown, self._encode(unknown), strict=True))
        self._keep(new, owner)
        return known | new

    def _keep(self, new: dict[str, list[int]], owner: str) -> None:
        kept = {piece: ids for piece, ids in new.items() if _size(piece, ids) <= self._limit_bytes}
        with self._lock:
            for piece, ids in kept.items():
                # Another thread may have encoded the same piece meanwhile.
                if (owner, piece) not in self._entries:
                    self._entries[owner, piece] = ids
                    self.used_bytes += _size(piece, ids)
            while self.used_bytes > self._limit_bytes:
                (_, piece), ids = self._entries.popitem(last=False)
                self.used_bytes -= _size(piece, ids)


def _size(piece: str, ids: list[int]) -> int:
    return getsizeof(piece) + getsizeof(ids) + _ENTRY_BYTES
