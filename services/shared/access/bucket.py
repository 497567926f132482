"""A token bucket: refilled all the time, full with what one minute may use."""

from __future__ import annotations

import math
from collections.abc import Callable

MINUTE_S = 60.0


class Bucket:
    """Holds at most a minute's worth; below zero is debt, which time pays.

    Args:
        per_minute: its capacity and what flows in each minute.
        now: seconds, from any beginning.
    """

    def __init__(self, per_minute: int, now: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self._now = now
        self._level = float(per_minute)
        self._at = now()

    @property
    def level(self) -> float:
        """What there is now."""
        now = self._now()
        flown = (now - self._at) * self.per_minute / MINUTE_S
        self._level, self._at = min(self._level + flown, float(self.per_minute)), now
        return self._level

    @property
    def remaining(self) -> int:
        return max(0, math.floor(self.level))

    @property
    def full_in_s(self) -> float:
        """Seconds until nothing is missing."""
        return (self.per_minute - self.level) * MINUTE_S / self.per_minute

    def wait_s(self, amount: int) -> float:
        """Seconds until `amount` is there; what never would be waits for all that can."""
        missing = min(amount, self.per_minute) - self.level
        return max(0.0, missing * MINUTE_S / self.per_minute)

    def take(self, amount: int) -> None:
        """Takes also what is not there."""
        self._level = self.level - amount

    def give_back(self, amount: int) -> None:
        self._level = min(self.level + amount, float(self.per_minute))

    def learn(self, level: float) -> None:
        """Somebody who knows better tells what there is now."""
        self._level, self._at = min(level, float(self.per_minute)), self._now()
