"""A clock that the test turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Alarm:
    when: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class ManualClock:
    now: float = 1000.0
    alarms: list[Alarm] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None], /) -> Alarm:
        alarm = Alarm(when, callback)
        self.alarms.append(alarm)
        return alarm

    def pass_time(self, seconds: float) -> None:
        """Each call whose time has come is made once, in the order in which they were asked for."""
        self.now += seconds
        for alarm in self.alarms:
            if not alarm.cancelled and alarm.when <= self.now:
                alarm.cancel()
                alarm.callback()
        self.alarms = [alarm for alarm in self.alarms if not alarm.cancelled]
