"""Kinds of generations for which no replica is there."""

from __future__ import annotations

from collections.abc import Callable

from services.router.admission.returning_line import Kind
from services.router.clock import Clock, Timer


class Absences:
    """Knows since when each kind has none, and calls when that has been too long.

    Args:
        clock: for the times.
        wait_s: how long a replica is waited for.
        on_end: called with a kind when the wait is over; it is forgotten then.
    """

    def __init__(self, clock: Clock, wait_s: float, on_end: Callable[[Kind], None]) -> None:
        self.wait_s = wait_s
        self._clock = clock
        self._on_end = on_end
        self._timers: dict[Kind, Timer] = {}

    def __contains__(self, kind: Kind) -> bool:
        return kind in self._timers

    def begin(self, kind: Kind) -> None:
        """There is none for this kind; that it was known before does no harm."""
        if kind not in self._timers:
            until = self._clock.time() + self.wait_s
            self._timers[kind] = self._clock.call_at(until, lambda: self._expire(kind))

    def end(self, kind: Kind) -> None:
        """There is one, or nobody of this kind waits any more."""
        timer = self._timers.pop(kind, None)
        if timer is not None:
            timer.cancel()

    def _expire(self, kind: Kind) -> None:
        del self._timers[kind]
        self._on_end(kind)
