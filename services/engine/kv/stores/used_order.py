"""When records of the file were used, and in which order they give way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import lmdb

STAMP_BYTES = 8


@dataclass(frozen=True, slots=True)
class UsedOrder:
    """Two tables inside the file: key to stamp, and (stamp, key) in rising order.

    A stamp is milliseconds of the wall clock: processes share the file, also after a restart.
    """

    used: lmdb._Database
    order: lmdb._Database

    def used_at(self, txn: lmdb.Transaction, key: bytes) -> int | None:
        stamp = txn.get(key, db=self.used)
        return None if stamp is None else int.from_bytes(stamp)

    def note(self, txn: lmdb.Transaction, key: bytes, now: int) -> None:
        """The record is used at `now`, or new."""
        self._forget_order(txn, key)
        stamp = now.to_bytes(STAMP_BYTES)
        txn.put(key, stamp, db=self.used)
        txn.put(stamp + key, b"", db=self.order)

    def forget(self, txn: lmdb.Transaction, key: bytes) -> None:
        self._forget_order(txn, key)
        txn.delete(key, db=self.used)

    def oldest(self, txn: lmdb.Transaction) -> tuple[int, bytes] | None:
        """The stamp and key of what was used longest ago."""
        with txn.cursor(self.order) as cursor:
            if not cursor.first():
                return None
            entry = bytes(cursor.key())
        return int.from_bytes(entry[:STAMP_BYTES]), entry[STAMP_BYTES:]

    def stir(self, txn: lmdb.Transaction) -> None:
        """Writes what is there already, so that the transaction is one that counts."""
        oldest = self.oldest(txn)
        if oldest is not None:
            self.note(txn, oldest[1], oldest[0])

    def keys(self, txn: lmdb.Transaction, prefix: bytes) -> Iterator[bytes]:
        with txn.cursor(self.used) as cursor:
            more = cursor.set_range(prefix)
            while more and (key := bytes(cursor.key())).startswith(prefix):
                yield key
                more = cursor.next()

    def _forget_order(self, txn: lmdb.Transaction, key: bytes) -> None:
        stamp = txn.get(key, db=self.used)
        if stamp is not None:
            txn.delete(bytes(stamp) + key, db=self.order)
