"""Notes of use that are written beside the reads that made them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from queue import Empty, SimpleQueue
from threading import Thread

AT_ONCE = 256
"""Notes that are written together."""

CLOSING_S = 2.0


class Touches:
    """Hands keys to `note` on a thread of its own, many at a time.

    A writer waits for other processes' writers, and a read never should.
    """

    def __init__(self, note: Callable[[Collection[bytes]], None]) -> None:
        self._note = note
        self._keys: SimpleQueue[bytes | None] = SimpleQueue()
        self._waiting: set[bytes] = set()
        self._thread = Thread(target=self._run, name="cache touches", daemon=True)
        self._thread.start()

    def add(self, key: bytes) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            self._keys.put(key)

    def close(self) -> None:
        """Waits a moment for what is being written."""
        self._keys.put(None)
        self._thread.join(CLOSING_S)

    def _run(self) -> None:
        while (key := self._keys.get()) is not None:
            keys = {key}
            while len(keys) < AT_ONCE and (more := self._next()) is not None:
                keys.add(more)
            self._note(keys)
            self._waiting -= keys

    def _next(self) -> bytes | None:
        try:
            key = self._keys.get_nowait()
        except Empty:
            return None
        if key is None:
            self._keys.put(None)  # the end, for the loop around
        return key
