"""How late the event loop is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.shared.loop_lag import INTERVAL_S, LoopLag


class Due:
    """A timer of the clock."""

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class SlowClock:
    """Calls back as late as it is told."""

    def __init__(self) -> None:
        self.now = 5.0
        self.due: list[Due] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None], /) -> Due:
        self.due.append(Due(when, callback))
        return self.due[-1]

    def come(self, late_s: float) -> None:
        timer = self.due[-1]
        self.now = timer.when + late_s
        timer.callback()


def test_lateness_is_noted_at_each_turn_and_does_not_add_up() -> None:
    clock = SlowClock()
    lag = LoopLag(clock)
    with lag.measured():
        for late_s in (0.0, 0.004, 3.0):
            clock.come(late_s)
        assert clock.due[-1].when == pytest.approx(clock.now + INTERVAL_S)
    assert lag.seconds.count == 3
    assert lag.seconds.total == pytest.approx(3.004)
    assert lag.seconds.counts[-1] == 1
    assert clock.due[-1].is_cancelled
