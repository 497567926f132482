"""A file to which several processes add lines, and which others may move away."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODE = 0o600


class GrowingFile:
    """Opened when the first line comes, and again when another file has taken its place.

    Each method raises OSError. For one thread.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def add(self, line: bytes) -> None:
        """After the lines of others; `line` has its end."""
        descriptor = self._opened()
        with _alone(descriptor):
            data = line if _ends_a_line(descriptor) else b"\n" + line
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Returns when the lines outlive the machine."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _opened(self) -> int:
        if self._descriptor is not None and not self._is_there(self._descriptor):
            self.close()
        if self._descriptor is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, MODE)
        return self._descriptor

    def _is_there(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False


@contextmanager
def _alone(descriptor: int) -> Iterator[None]:
    """A line that is being written is seen in part, page by page: nobody looks meanwhile."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _ends_a_line(descriptor: int) -> bool:
    """Whoever wrote last may have had no room for all of it."""
    size = os.fstat(descriptor).st_size
    return not size or os.pread(descriptor, 1, size - 1) == b"\n"
