"""A store in one file of the machine, which several engines share."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import lmdb

from services.engine.kv.record import Payload, layout_digest
from services.engine.kv.store import StoreFailed
from services.engine.kv.stores import lmdb_records
from services.engine.kv.stores.lmdb_file import LmdbFile, OpenFile
from services.engine.kv.stores.touches import Touches

T = TypeVar("T")

TOUCH_S = 60.0
"""A read notes that a record was used where that was last noted longer ago."""

SLACK_RECORDS = 8
"""Room for as many is kept free: what readers still see is not free yet, and the free lies in
pieces.
"""

TRIES = 4
"""Each makes twice the room of the one before."""

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""LMDB says EIO where a part of what it writes found room."""

_DISK_IS_FULL = (
    "cannot be written, the disk is full or fails: make room on it, or lower"
    " cache.embedded.max_bytes"
)

_MAP_FULL = (
    "has no room in one piece, or a reader that hangs keeps it: raise cache.embedded.max_bytes, or"
    " end that engine"
)

_DAMAGED = (
    lmdb.BadTxnError,
    lmdb.CorruptedError,
    lmdb.IncompatibleError,
    lmdb.InvalidError,
    lmdb.PageNotFoundError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
)


class LmdbStore:
    """`Store` in `folder`. Records of all layouts share its `max_bytes`.

    Records live for `ttl_s` after their last use; what was used longest ago gives way to new ones.
    Use is noted with TOUCH_S as the measure, so that most reads write nothing.
    """

    def __init__(self, folder: Path, max_bytes: int, layout_id: str, ttl_s: float) -> None:
        self._file = LmdbFile(folder, max_bytes)
        self._max_bytes = max_bytes
        self._bytes = max_bytes
        self._namespace = layout_digest(layout_id)
        self._ttl_ms = round(ttl_s * 1000)
        self._touch_ms = round(min(TOUCH_S, ttl_s / 4) * 1000)
        self._touches = Touches(self._touch)

    def get(self, address: bytes) -> Payload | None:
        key, now = self._namespace + address, _now_ms()
        found = self._try(lambda file: lmdb_records.read(file, key))
        if found is None or self._expired(found[1], now):
            return None
        record, used = found
        if abs(now - used) >= self._touch_ms:
            self._touches.add(key)
        return record

    def put(self, address: bytes, record: Payload) -> None:
        size = memoryview(record).nbytes
        try:
            check_room(self._max_bytes, size)
        except ValueError as error:
            raise StoreFailed(f"cache.embedded.max_bytes {error}") from None
        full = ""
        for room in (SLACK_RECORDS * size << attempt for attempt in range(TRIES)):
            full = self._try(partial(self._write, address, record, room))
            if not full:
                return
        raise StoreFailed(f"{self._file.data} {full}")

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        keys, now = [self._namespace + address for address in addresses], _now_ms()
        found = self._try(lambda file: lmdb_records.stamps(file, keys))
        return [used is not None and not self._expired(used, now) for used in found]

    def flush(self) -> int:
        return self._try(lambda file: lmdb_records.drop_all(file, self._namespace))

    def close(self) -> None:
        self._touches.close()
        self._file.close()

    def _write(self, address: bytes, record: Payload, room: int, file: OpenFile) -> str:
        """Writes it where `room` beside it can be kept free, or tells what is full."""
        key, size, now = self._namespace + address, memoryview(record).nbytes, _now_ms()
        expired = now - self._ttl_ms
        try:
            bound = max(self._bytes - room, 0)
            lmdb_records.write(file, key, record, now=now, expired=expired, bound=bound)
        except lmdb.MapFullError:
            file.env.reader_check()  # one that died keeps what it saw
            full = _MAP_FULL
        except lmdb.Error as error:
            if _code_of(error) not in _DISK_FULL:
                raise
            # The file stays as large as it is: what comes takes the place of what is old.
            self._bytes = min(self._bytes, self._file.size())
            full = f"{_DISK_IS_FULL} ({error})"
        else:
            return ""
        with suppress(lmdb.MapFullError):
            lmdb_records.make_room(file, size, max(self._bytes - 2 * room, 0))
        return full

    def _expired(self, used: int, now: int) -> bool:
        return now - used > self._ttl_ms

    def _touch(self, keys: Collection[bytes]) -> None:
        with suppress(StoreFailed):  # whoever reads or writes next learns of it
            self._try(lambda file: lmdb_records.touch(file, keys, _now_ms()))

    def _try(self, act: Callable[[OpenFile], T]) -> T:
        """Raises StoreFailed and nothing else. A damaged file is begun anew."""
        try:
            with self._file.using() as file:
                return self._looked_after(act, file)
        except (lmdb.Error, OSError) as error:
            raise StoreFailed(self._told(error)) from error

    def _looked_after(self, act: Callable[[OpenFile], T], file: OpenFile) -> T:
        try:
            return act(file)
        except _DAMAGED as error:
            self._file.replace(file, str(error))
            raise StoreFailed(f"{self._file.data} was damaged: {error}") from error
        except lmdb.ReadersFullError as error:
            file.env.reader_check()
            raise StoreFailed(f"{self._file.data} is read by too many at once") from error

    def _told(self, error: Exception) -> str:
        full = _code_of(error) in _DISK_FULL
        return f"{self._file.data} {_DISK_IS_FULL if full else 'cannot be used'} ({error})"


def check_room(max_bytes: int, size: int) -> None:
    """Raises ValueError where records of `size` bytes cannot come and go in a file of that size."""
    least = size * (2 * SLACK_RECORDS)
    if max_bytes < least:
        raise ValueError(f"must be >= {least} for records of {size} bytes, got {max_bytes}")


def _code_of(error: Exception) -> int | None:
    return error.errno if isinstance(error, OSError) else getattr(error, "code", None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
