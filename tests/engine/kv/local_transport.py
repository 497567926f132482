"""Memory that engines of one process read from each other, as a transport would."""

from __future__ import annotations

import threading

from services.engine.kv.staging import Staging

BASE = 2**20
"""Where the memory of each engine begins."""


class Wire:
    """What is registered, by session.

    Attributes:
        fails: nothing can be read.
        spoils: what is read has a wrong byte.
        passing: reads hang until it is set.
    """

    def __init__(self) -> None:
        self.memory: dict[str, memoryview] = {}
        self.fails = False
        self.spoils = False
        self.reads = 0
        self.passing = threading.Event()
        self.passing.set()


class LocalTransport:
    """One engine's end."""

    def __init__(self, wire: Wire) -> None:
        self.session = f"engine-{len(wire.memory)}"
        self._wire = wire

    def register(self, memory: memoryview) -> int:
        self._wire.memory[self.session] = memory
        return BASE

    def read(self, session: str, offset: int, into: int, size: int) -> bool:
        self._wire.reads += 1
        self._wire.passing.wait()
        if self._wire.fails:
            return False
        source, ours = self._wire.memory[session], self._wire.memory[self.session]
        ours[into - BASE :][:size] = source[offset - BASE :][:size]
        if self._wire.spoils:
            ours[into - BASE] ^= 1
        return True


def staging(wire: Wire, block_bytes: int, slots: int = 8) -> Staging:
    return Staging(LocalTransport(wire), block_bytes, slots * block_bytes)
