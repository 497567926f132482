"""Blocks of any size in plain memory, for engines that compute nothing."""

from __future__ import annotations

import threading

from services.engine.kv.record import Payload


class PlainMemory:
    """Copies of what a test wrote.

    Attributes:
        reading: each copy waits for it, so that a test can hold one.
        copying: copies that run; copied: those that are done.
    """

    def __init__(self, blocks: int, block_bytes: int) -> None:
        self.block_bytes = block_bytes
        self.reading = threading.Event()
        self.reading.set()
        self.copying = self.copied = 0
        self._bytes = memoryview(bytearray(blocks * block_bytes))

    def read(self, block: int) -> memoryview:
        buffer = memoryview(bytearray(self.block_bytes))
        self.read_into(block, buffer)
        return buffer

    def read_into(self, block: int, buffer: memoryview) -> None:
        self.copying += 1
        self.reading.wait()
        start = block * self.block_bytes
        buffer[:] = self._bytes[start : start + self.block_bytes]
        self.copying -= 1
        self.copied += 1

    def write(self, block: int, payload: Payload) -> None:
        start = block * self.block_bytes
        self._bytes[start : start + self.block_bytes] = memoryview(payload).cast("B")
