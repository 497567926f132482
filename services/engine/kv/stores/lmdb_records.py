"""Records in the shared file: read, written, and the oldest dropped when there are too many."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

import lmdb

from services.engine.kv.record import Payload
from services.engine.kv.stores.lmdb_file import OpenFile

DROPPED_AT_ONCE = 256
"""Records in one transaction of a flush; others may write between two."""

EXPIRED_AT_ONCE = 16
"""Records beyond their time that one put clears away."""


def read(file: OpenFile, key: bytes) -> tuple[bytes, int] | None:
    """The record and the stamp of its use."""
    with file.env.begin() as txn:
        used = file.order.used_at(txn, key)
        # A copy: the pages may be written anew once the transaction has ended.
        record = txn.get(key, db=file.records)
    return None if record is None or used is None else (record, used)


def stamps(file: OpenFile, keys: Collection[bytes]) -> list[int | None]:
    """When they were used; None for those that are not there."""
    with file.env.begin() as txn:
        return [file.order.used_at(txn, key) for key in keys]


def write(
    file: OpenFile, key: bytes, record: Payload, *, now: int, expired: int, bound: int
) -> None:
    """Writes it after the oldest have given way, so that no more than `bound` bytes are in use.

    The free pages of the file do not count. `now` is the record's stamp; what was used before
    `expired` has had its time.

    Raises:
        lmdb.MapFullError: there is no room in one piece.
    """
    with file.env.begin(write=True) as txn:
        _drop_expired(file, txn, expired)
        _drop(file, txn, key)
        _make_room(file, txn, memoryview(record).nbytes, bound)
        txn.put(key, record, db=file.records)
        file.order.note(txn, key, now)


def make_room(file: OpenFile, size: int, bound: int) -> None:
    """Drops the oldest, so that `size` more bytes fit `bound` for the next that writes."""
    with file.env.begin(write=True) as txn:
        _make_room(file, txn, size, bound)
    # What a transaction frees can be used by the second after it, not by the next.
    with file.env.begin(write=True) as txn:
        file.order.stir(txn)


def touch(file: OpenFile, keys: Collection[bytes], now: int) -> None:
    with file.env.begin(write=True) as txn:
        for key in keys:
            if file.order.used_at(txn, key) is not None:
                file.order.note(txn, key, now)


def drop_all(file: OpenFile, prefix: bytes) -> int:
    """Drops what begins with it, and tells how many."""
    dropped = 0
    while True:
        with file.env.begin(write=True) as txn:
            keys = list(islice(file.order.keys(txn, prefix), DROPPED_AT_ONCE))
            for key in keys:
                _drop(file, txn, key)
        dropped += len(keys)
        if len(keys) < DROPPED_AT_ONCE:
            return dropped


def used_bytes(file: OpenFile, txn: lmdb.Transaction) -> int:
    """Of the pages that hold records and their order."""
    tables = (file.records, file.order.used, file.order.order)
    return sum(_table_bytes(txn, table) for table in tables)


def _table_bytes(txn: lmdb.Transaction, table: lmdb._Database) -> int:
    stat = txn.stat(table)
    pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
    return pages * stat["psize"]


def _make_room(file: OpenFile, txn: lmdb.Transaction, size: int, bound: int) -> None:
    while used_bytes(file, txn) + size > bound:
        oldest = file.order.oldest(txn)
        if oldest is None:
            return
        _drop(file, txn, oldest[1])


def _drop_expired(file: OpenFile, txn: lmdb.Transaction, expired: int) -> None:
    for _ in range(EXPIRED_AT_ONCE):
        oldest = file.order.oldest(txn)
        if oldest is None or oldest[0] >= expired:
            return
        _drop(file, txn, oldest[1])


def _drop(file: OpenFile, txn: lmdb.Transaction, key: bytes) -> None:
    file.order.forget(txn, key)
    txn.delete(key, db=file.records)
