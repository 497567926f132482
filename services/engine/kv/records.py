"""The records of one KV layout in a store: written sealed, read checked."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from services.engine.kv.record import BadRecord, layout_digest, opened, seal
from services.engine.kv.store import Store

BAD_RECORDS = 4096
"""So many addresses of bad records are remembered, until they have been written anew."""


class Records:
    """For any thread; each call may block as long as the store's does, and raises StoreFailed."""

    def __init__(self, store: Store, layout_id: str) -> None:
        self._store = store
        self._layout = layout_digest(layout_id)
        self._lock = Lock()
        self._bad: OrderedDict[bytes, None] = OrderedDict()

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        """Which of them are there, as the store says; one that was read and bad is not."""
        there = self._store.present(addresses)
        return [
            is_there and address not in self._bad
            for is_there, address in zip(there, addresses, strict=True)
        ]

    def read(self, address: bytes) -> memoryview | None:
        """The block's bytes; None where there is no record.

        Raises:
            BadRecord: what came is not this block of this layout; a later `write` replaces it.
        """
        record = self._store.get(address)
        if record is None:
            return None
        try:
            return opened(record, address, self._layout)
        except BadRecord:
            with self._lock:
                self._bad[address] = None
                if len(self._bad) > BAD_RECORDS:
                    self._bad.popitem(last=False)
            raise

    def write(self, address: bytes, record: memoryview) -> None:
        """Writes the block whose bytes follow HEADER_BYTES of room; the room is filled in."""
        seal(record, address, self._layout)
        self._store.put(address, record)
        with self._lock:
            self._bad.pop(address, None)

    def flush(self) -> int:
        """Drops all and tells how many, as far as the store knows."""
        return self._store.flush()

    def close(self) -> None:
        """Closes the store. No call may be on its way."""
        self._store.close()
