"""A store in this process that fails, hangs and spoils as a test wants it."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from services.engine.kv.record import HEADER_BYTES, Payload
from services.engine.kv.store import StoreFailed


class Shelf:
    """Keeps records in a dictionary.

    Attributes:
        passing: while it is not set, calls do not come back.
        failure: what calls raise.
        asked: calls of `get` and `present` that have begun; `put` likewise.
        lies: `present` says yes to everything.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.passing = Event()
        self.passing.set()
        self.failure: StoreFailed | None = None
        self.asked = 0
        self.put_calls = 0
        self.lies = False
        self.is_closed = False

    def get(self, address: bytes) -> Payload | None:
        self.asked += 1
        self._pass()
        return self.records.get(address)

    def put(self, address: bytes, record: Payload) -> None:
        self.put_calls += 1
        self._pass()
        self.records[address] = bytes(record)

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        self.asked += 1
        self._pass()
        return [self.lies or address in self.records for address in addresses]

    def flush(self) -> int:
        self._pass()
        count = len(self.records)
        self.records.clear()
        return count

    def close(self) -> None:
        self.is_closed = True

    def _pass(self) -> None:
        self.passing.wait()
        if self.failure is not None:
            raise self.failure


def roomy(payload: bytes | memoryview) -> memoryview:
    """A block's bytes after room for a header, as `Records.write` wants them."""
    return memoryview(bytearray(HEADER_BYTES) + payload)
