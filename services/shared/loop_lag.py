"""How late the event loop is: a timer that should come ten times a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from services.shared.histogram import Histogram

INTERVAL_S = 0.1
BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Timer(Protocol):
    def cancel(self) -> object: ...


class Clock(Protocol):
    """An event loop is one."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer: ...


class LoopLag:
    """Measures inside `measured`; a loop that stands still is noted once, when it goes on."""

    def __init__(self, clock: Clock) -> None:
        self.seconds = Histogram(BOUNDS_S)
        self._clock = clock
        self._due = 0.0
        self._timer: Timer | None = None

    @contextmanager
    def measured(self) -> Iterator[None]:
        self._wait()
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _wait(self) -> None:
        self._due = self._clock.time() + INTERVAL_S
        self._timer = self._clock.call_at(self._due, self._came)

    def _came(self) -> None:
        self.seconds.note(max(0.0, self._clock.time() - self._due))
        self._wait()
