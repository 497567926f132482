"""Whose turn it is, where each has a share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Turns:
    """What each was given, over its weight, so that the one that had least is next.

    This is start-time fair queuing (Goyal, Vin and Cheng 1996). One that was away, or was passed
    over, is owed no more than the caller says; so nothing floods what comes back.
    """

    def __init__(self) -> None:
        self.count = 0
        self._names: Sequence[str] = ()
        self._ends: dict[str, float] = {}
        self._now = 0.0

    def know(self, names: Sequence[str]) -> None:
        """All that are there: those that are new begin now, and others are forgotten."""
        if names == self._names:
            return
        self._names = names
        self._ends = {name: self._ends.get(name, self._now) for name in names}

    def starts(self, names: Iterable[str], lag: float) -> list[float]:
        """When their turns begin, at least `lag` before that of the one that had most."""
        first, ends, now = self._now - lag, self._ends, self._now
        return [max(ends.get(name, now), first) for name in names]

    def take(self, name: str, weight: float, lag: float) -> None:
        """It has its turn; the next begins later, the sooner the more it weighs."""
        (start,) = self.starts([name], lag)
        self._now = max(self._now, start)
        self._ends[name] = start + 1 / weight
        self.count += 1
