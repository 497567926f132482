"""The file that the engines of a machine share: opened, checked, and begun anew when damaged."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Lock

import lmdb
import lmdb.verify

from services.engine.kv.store import StoreFailed
from services.engine.kv.stores.used_order import UsedOrder

READERS = 1024
"""Reads at a time, of all processes together."""

READERS_BYTES = READERS * 64 + 4096
"""Of the file beside the data in which LMDB counts them."""

REPLACING_PAUSE_S = 60.0
"""A disk that damages each new file is not fed more often than this."""

CLOSING_S = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The file as it is open now; one that was begun anew closes with the last that holds it."""

    env: lmdb.Environment
    records: lmdb._Database
    order: UsedOrder
    inode: int


class LmdbFile:
    """Opens the file when it is needed, and again when another process has begun it anew.

    Locks beside it: `opening.lock` while one opens or removes it; `users.lock` is shared by all
    that have it open, so that one knows when it is alone. Only then is the file looked through:
    LMDB trusts what it reads, and a damaged file can end the process.

    Args:
        folder: it is made where it is missing, for this user alone.
        max_bytes: of the file.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.data = folder / "data.mdb"
        self._folder = folder
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._idle = Condition()
        self._uses = 0
        self._open: OpenFile | None = None
        self._users: int | None = None
        self._replaced_at = float("-inf")

    @contextmanager
    def using(self) -> Iterator[OpenFile]:
        """The file, which stays open as long. Raises OSError or lmdb.Error where it cannot be."""
        with self._idle:
            self._uses += 1
        try:
            yield self.current()
        finally:
            with self._idle:
                self._uses -= 1
                self._idle.notify_all()

    def current(self) -> OpenFile:
        taken = self._open
        if taken is not None and taken.inode == _inode(self.data):
            return taken
        with self._lock:
            taken = self._open
            if taken is not None and taken.inode == _inode(self.data):
                return taken
            taken = self._open = None  # LMDB has a file open once in a process
            taken = self._open = self._opened()
            return taken

    def replace(self, damaged: OpenFile, why: str) -> None:
        """Removes the file, unless somebody has done so. All that have it open notice.

        Raises:
            StoreFailed: it was damaged a moment ago already.
        """
        with self._lock, self._opening():
            if damaged.inode != _inode(self.data):
                return
            if time.monotonic() - self._replaced_at < REPLACING_PAUSE_S:
                raise StoreFailed(f"{self.data} is damaged again: see the disk's health ({why})")
            self._replaced_at = time.monotonic()
            self._remove(why)

    def size(self) -> int:
        """Bytes of the file. Raises OSError."""
        return self.data.stat().st_size

    def close(self) -> None:
        """Waits a moment for those that use it."""
        with self._idle:
            idle = self._idle.wait_for(lambda: self._uses == 0, CLOSING_S)
        with self._lock:
            taken, self._open = self._open, None
            if taken is not None and idle:
                taken.env.close()
            if self._users is not None:
                os.close(self._users)
                self._users = None

    def _opened(self) -> OpenFile:
        with self._opening():
            if self._alone():
                self._look_through()
                self._make_room_for_readers()
            try:
                return self._opened_env()
            finally:
                fcntl.flock(self._users_lock(), fcntl.LOCK_SH)

    def _opened_env(self) -> OpenFile:
        env = lmdb.open(
            str(self._folder),
            map_size=self._max_bytes,
            max_dbs=3,
            max_readers=READERS,
            mode=0o600,
            sync=False,
            metasync=False,
            meminit=False,
        )
        env.reader_check()
        records = env.open_db(b"records")
        order = UsedOrder(env.open_db(b"used"), env.open_db(b"order"))
        return OpenFile(env, records, order, _inode(self.data))

    def _make_room_for_readers(self) -> None:
        """LMDB maps the file, and to fill a hole of it on a full disk ends the process.

        For one who is alone: to close the file gives up the locks that LMDB has on it where this
        process has it open. Raises OSError.
        """
        lock = _lock_file(self._folder / "lock.mdb")
        try:
            os.posix_fallocate(lock, 0, READERS_BYTES)
        finally:
            os.close(lock)

    def _look_through(self) -> None:
        """Begins anew where the file is damaged or larger than it may be now."""
        size = self.data.stat().st_size if self.data.exists() else 0
        if size == 0:
            self._remove(None)
        elif size > self._max_bytes:
            self._remove(f"{size} bytes are more than {self._max_bytes}")
        else:
            try:
                problems = lmdb.verify.verify(str(self._folder))
            except lmdb.verify.VerifyError as error:
                problems = [str(error)]
            if problems:
                self._remove(problems[0])

    def _remove(self, why: str | None) -> None:
        """The data first: a lock file without data is harmless."""
        if why is not None:
            _log.warning("the cache's file starts empty: %s", why, extra={"path": str(self.data)})
        self.data.unlink(missing_ok=True)
        (self._folder / "lock.mdb").unlink(missing_ok=True)

    def _alone(self) -> bool:
        try:
            fcntl.flock(self._users_lock(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _users_lock(self) -> int:
        if self._users is None:
            self._users = _lock_file(self._folder / "users.lock")
        return self._users

    @contextmanager
    def _opening(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _lock_file(self._folder / "opening.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _lock_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _inode(path: Path) -> int:
    """0 where there is no file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0
