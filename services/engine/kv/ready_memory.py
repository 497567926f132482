"""Buffers that can be written at once: the system has given their pages already."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

AHEAD_BYTES = 64 * 2**20
"""Kept ready. New pages take the system longer than filling them: milliseconds a block."""


class ReadyMemory:
    """Buffers of one size, up to a bound. They are given back to be given again.

    `take` and `give_back` belong to one thread at a time.

    Args:
        max_bytes: of all buffers together.
        size: bytes of a buffer.
    """

    def __init__(self, max_bytes: int, size: int) -> None:
        self._size = size
        self._unmade = max_bytes // size
        self._ahead = max(1, AHEAD_BYTES // size)
        self._ready: deque[memoryview] = deque()
        self._making = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="host-memory")
        self._make()

    def take(self) -> memoryview | None:
        """A buffer, or None while none is ready; more are made meanwhile, up to the bound."""
        buffer = self._ready.popleft() if self._ready else None
        if len(self._ready) <= self._ahead // 2 and self._unmade > 0 and not self._making:
            self._making = True
            self._thread.submit(self._make)
        return buffer

    def give_back(self, buffer: memoryview) -> None:
        self._ready.append(buffer)

    def close(self) -> None:
        """Makes no more."""
        self._unmade = 0
        self._thread.shutdown()

    def _make(self) -> None:
        while self._unmade > 0 and len(self._ready) < self._ahead:
            self._unmade -= 1
            self._ready.append(np.full(self._size, 0, np.uint8).data)
        self._making = False
