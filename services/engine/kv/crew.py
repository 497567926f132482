"""Threads for calls that may hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from services.engine.giving_way import give_way

Answer = TypeVar("Answer")

Call = Callable[[], None]


class Crew:
    """A fixed number of threads. A call that hangs keeps one, and a process ends all the same."""

    def __init__(self, name: str, threads: int) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Call] | None] = SimpleQueue()
        self._lock = Lock()
        self._free = threads
        self._closed = False
        self._threads = [
            Thread(target=self._work, name=f"{name}-{index}", daemon=True)
            for index in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def free(self) -> int:
        """Threads that make no call now."""
        return self._free

    def call(self, question: Callable[[], Answer]) -> Future[Answer]:
        """What `question` returns or raises, in its turn; cancelled before that, it is not asked.

        After `close` it is cancelled at once.
        """
        future: Future[Answer] = Future()

        def make() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                answer = question()
            except Exception as error:  # noqa: BLE001  # raised to who asked
                future.set_exception(error)
            else:
                future.set_result(answer)

        if self._closed:
            future.cancel()
        else:
            self._calls.put((future, make))
        return future

    def close(self) -> None:
        """Makes no further call; what waits is cancelled."""
        self._closed = True
        try:
            while True:
                waiting = self._calls.get_nowait()
                if waiting is not None:
                    waiting[0].cancel()
        except Empty:
            for _ in self._threads:
                self._calls.put(None)

    def join(self, timeout_s: float) -> bool:
        """After `close`: whether the last call has come back within this time."""
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        give_way()
        while (call := self._calls.get()) is not None:
            self._count(-1)
            call[1]()
            self._count(1)
            del call  # and with it the answer, which may be large

    def _count(self, change: int) -> None:
        with self._lock:
            self._free += change
