"""Rows go to the database behind the requests: a bounded queue and one thread."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import Protocol

from services.shared.plain_text import plain
from services.shared.request_log.drop import FAULTS, Drop, cause_of, words_of
from services.shared.request_log.row import RequestRow

GATHER_S = 0.1
"""Rows that come within this time are written together."""

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
SWEEP_INTERVAL_S = 600.0
SWEEP_ROWS = 500
MAX_WORDS = 300

_log = logging.getLogger(__name__)


class Rows(Protocol):
    """A database that is open. Each method raises one of `drop.FAULTS`."""

    @property
    def is_gone(self) -> bool: ...

    def write(self, rows: Sequence[RequestRow]) -> None: ...

    def delete_before(self, began_us: int, count: int) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """What a request log may take.

    Args:
        keep_s: after so many seconds rows are deleted.
        queue: rows that wait at most.
        batch: rows that are written together at most.
    """

    keep_s: float
    queue: int = 8192
    batch: int = 512


class RequestLog:
    """Takes rows from any thread and never waits for the database.

    While the database cannot be written, rows wait in the queue; when that is full, those that come
    are dropped and counted under what is wrong. It is opened again until it takes them.

    Args:
        open_rows: opens the database; raises one of `drop.FAULTS`.
        bounds: of memory and time.

    Attributes:
        written: rows that the database has taken.
        dropped: rows that were lost, by cause.
    """

    def __init__(self, open_rows: Callable[[], Rows], bounds: Bounds) -> None:
        self._open = open_rows
        self._bounds = bounds
        self._waiting: deque[RequestRow] = deque()
        self._batch: list[RequestRow] = []
        self._size = bounds.batch
        self._rows: Rows | None = None
        self._trouble: Drop | None = None
        self._pause_s = FIRST_PAUSE_S
        self._sweep_at = 0.0
        self._woken = Event()
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="request log", daemon=True)
        self.written = 0
        self.dropped = dict.fromkeys(Drop, 0)

    @property
    def queued(self) -> int:
        """Rows that wait."""
        return len(self._waiting) + len(self._batch)

    def start(self) -> None:
        self._thread.start()

    def add(self, row: RequestRow) -> None:
        """Returns at once."""
        if self._stopping.is_set():
            self.dropped[Drop.STOPPED] += 1
            return
        if self.queued < self._bounds.queue:
            self._waiting.append(row)
            self._woken.set()
            return
        if self._trouble is None:
            self._tell(Drop.QUEUE_FULL, "the database takes fewer rows than come")
        self.dropped[self._trouble or Drop.QUEUE_FULL] += 1

    def close(self, timeout_s: float) -> None:
        """Writes what waits, for `timeout_s` seconds at most; what is left is counted and told."""
        self._stopping.set()
        self._woken.set()
        self._thread.join(timeout_s)
        self.dropped[self._trouble or Drop.STOPPED] += self.queued
        if lost := {cause.value: count for cause, count in self.dropped.items() if count}:
            _log.warning("rows of the request log were lost", extra={"fields": lost})

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # noqa: BLE001 the thread's own supervisor: it must not end unheard
            _log.exception("the request log ended, no row is written any more")
            self._trouble = Drop.STOPPED

    def _work(self) -> None:
        self._flush()  # opens the database, so that the log tells at the start what is wrong
        while not self._stopping.is_set():
            self._woken.wait(max(0.0, self._sweep_at - time.monotonic()))
            self._stopping.wait(GATHER_S)
            self._woken.clear()
            self._flush()
            self._sweep()
        if self._rows is not None:
            self._rows.close()

    def _flush(self) -> None:
        """Writes what waits, however long it takes; told to stop, it gives up where it fails."""
        while True:
            try:
                self._write()
            except FAULTS as error:
                if self._batch and cause_of(error) is Drop.REFUSED:
                    self._divide(error)
                    continue
                self._fail(error)
                if self._stopping.wait(self._pause_s):
                    return
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            else:
                if not self._waiting:
                    self._recover()
                    return

    def _write(self) -> None:
        """One batch, or nothing where nothing waits; the database is open then all the same."""
        if self._rows is not None and self._rows.is_gone:
            rows, self._rows = self._rows, None
            rows.close()
        if self._rows is None:
            self._rows = self._open()
        while self._waiting and len(self._batch) < self._size:
            self._batch.append(self._waiting.popleft())
        if self._batch:
            self._rows.write(self._batch)
            self.written += len(self._batch)
            self._batch = []
            self._size = min(2 * self._size, self._bounds.batch)

    def _divide(self, error: Exception) -> None:
        """Of rows of which one is refused, half are tried again, until that one is alone."""
        rows, self._batch = self._batch, []
        if len(rows) > 1:
            self._size = len(rows) // 2
            self._waiting.extendleft(reversed(rows))
            return
        self.dropped[Drop.REFUSED] += 1
        words = plain(words_of(error), MAX_WORDS)
        fields = {"error": words, "request_id": rows[0].request_id}
        _log.error("the request log does not take a row", extra={"fields": fields})

    def _fail(self, error: Exception) -> None:
        self._tell(cause_of(error), words_of(error))
        if self._rows is not None:
            rows, self._rows = self._rows, None
            rows.close()

    def _recover(self) -> None:
        self._pause_s = FIRST_PAUSE_S
        if self._trouble is not None:
            self._trouble = None
            fields = {"written": self.written, "dropped": sum(self.dropped.values())}
            _log.warning("the request log is written again", extra={"fields": fields})

    def _tell(self, cause: Drop, words: str) -> None:
        """Once for each change."""
        if cause is not self._trouble:
            self._trouble = cause
            fields = {"cause": cause.value, "error": plain(words, MAX_WORDS)}
            _log.warning("the request log cannot be written", extra={"fields": fields})

    def _sweep(self) -> None:
        """Deletes what is old, a little at a time."""
        if self._rows is None or time.monotonic() < self._sweep_at:
            return
        oldest_us = int(1e6 * (time.time() - self._bounds.keep_s))
        try:
            count = self._rows.delete_before(oldest_us, SWEEP_ROWS)
        except FAULTS as error:
            self._fail(error)
            count = 0
        if count < SWEEP_ROWS:
            self._sweep_at = time.monotonic() + SWEEP_INTERVAL_S
