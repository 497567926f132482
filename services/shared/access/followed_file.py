"""A file or folder whose changes are followed; one that breaks leaves what it said before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

INTERVAL_S = 1.0

_log = logging.getLogger(__name__)


class FollowedFile(Generic[T]):
    """What a file says, read when made and again whenever it was replaced or written.

    Args:
        path: the file, or a folder of files of which each counts.
        read: what it says; raises one of `faults`, whose text the log tells.
        faults: errors of a file that cannot be used.

    Raises:
        One of `faults`, when made.
    """

    def __init__(
        self, path: Path, read: Callable[[Path], T], faults: tuple[type[Exception], ...]
    ) -> None:
        self.path = path
        self._read = read
        self._faults = faults
        self._stamp = _stamp(path)
        self.value = read(path)

    def look(self) -> None:
        """Reads the file again if it changed."""
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self.value = self._read(self.path)
        except self._faults as error:
            _log.error("%s; what it said before counts on", error)
        else:
            _log.info("%s has changed and was read again", self.path)

    async def follow(self) -> None:
        """Looks every second, for ever, in another thread: file systems may be slow."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            await asyncio.to_thread(self.look)


def _stamp(path: Path) -> list[tuple[int, ...] | None]:
    """Differs for each state of the file and, where it is a folder, of what is in it."""
    try:
        within = sorted(path.iterdir()) if path.is_dir() else []
    except OSError:
        within = []
    return [_state(each) for each in (path, *within)]


def _state(path: Path) -> tuple[int, ...] | None:
    """None while it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
