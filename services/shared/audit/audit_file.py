"""Events go to the audit file behind the calls: a bounded queue and one thread."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Lock, Thread
from typing import Any

from services.shared.audit.event import AuditEvent, line_of, told_of
from services.shared.audit.growing_file import GrowingFile

QUEUE = 4096
ENDED = "the process ended"

_log = logging.getLogger(__name__)


class AuditFile:
    """Lines of one service in a file of several. What does not get there is told in the log.

    Args:
        path: of the file.
        service: codec, router, engine or keys.
        size: events that wait at most.

    Attributes:
        written, dropped: see Audit.
    """

    def __init__(self, path: Path, service: str, size: int = QUEUE) -> None:
        self._file = GrowingFile(path)
        self._service = service
        self._queue: Queue[dict[str, Any] | None] = Queue(size)
        self._thread = Thread(target=self._run, name="audit", daemon=True)
        self._counting = Lock()
        self._is_closed = False
        self.written = 0
        self.dropped = 0

    def start(self) -> None:
        self._thread.start()

    def note(self, event: AuditEvent) -> None:
        told = told_of(self._service, event)
        if self._is_closed:
            self._drop(told, ENDED)
            return
        try:
            self._queue.put_nowait(told)
        except Full:
            self._drop(told, "the queue is full")

    def close(self, timeout_s: float) -> None:
        """Writes what waits, for so many seconds at most; the rest is told in the log."""
        self._is_closed = True
        with suppress(Full):
            self._queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        with suppress(Empty):
            while True:
                left = self._queue.get_nowait()
                if left is not None:
                    self._drop(left, ENDED)

    def _run(self) -> None:
        while (told := self._queue.get()) is not None:
            try:
                self._file.add(line_of(told))
                if self._queue.empty():
                    self._file.sync()
            except OSError as error:
                self._drop(told, error.strerror or str(error))
            else:
                self.written += 1
        self._file.close()

    def _drop(self, told: dict[str, Any], why: str) -> None:
        with self._counting:
            self.dropped += 1
        fields = {"event": told, "error": why}
        _log.error("an event is not in the audit file", extra={"fields": fields})
