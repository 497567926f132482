"""Something that is done again and again, by a clock that comes from outside."""

from __future__ import annotations

from collections.abc import Callable

from services.router.clock import Clock, Timer


class Ticks:
    """Calls `on_tick` each `interval_s` seconds once started, with how late the call came."""

    def __init__(self, clock: Clock, interval_s: float, on_tick: Callable[[float], None]) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._on_tick = on_tick
        self._due = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        self._due = self._clock.time() + self._interval_s
        self._timer = self._clock.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        late = self._clock.time() - self._due
        self.start()
        self._on_tick(late)
