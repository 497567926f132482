"""The clock of one process: what it waits for ends with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from services.router.clock import Timer
from tests.simulation.virtual_time import VirtualLoop


class LifeClock:
    """A Clock whose timers are known."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._timers: dict[int, _LifeTimer] = {}
        self._next = 0

    def time(self) -> float:
        return self._loop.time()

    def call_at(self, when: float, callback: Callable[[], None], /) -> Timer:
        number, self._next = self._next, self._next + 1
        handle = self._loop.call_at(max(when, self._loop.time()), self._run, number, callback)
        timer = _LifeTimer(handle, partial(self._timers.pop, number, None))
        self._timers[number] = timer
        return timer

    def pending(self) -> int:
        """Calls that are still to come."""
        return len(self._timers)

    def end(self) -> None:
        for timer in list(self._timers.values()):
            timer.cancel()

    def _run(self, number: int, callback: Callable[[], None]) -> None:
        del self._timers[number]
        callback()


class _LifeTimer:
    def __init__(self, handle: Timer, forget: Callable[[], object]) -> None:
        self._handle = handle
        self._forget = forget

    def cancel(self) -> None:
        self._handle.cancel()
        self._forget()
