"""Whose turn it is, where each has a share."""

from __future__ import annotations

from collections.abc import Collection

GRACE = 2
"""Names that are remembered at most, as a multiple of those that are there."""


class Turns:
    """What each was given, over its weight, so that the one that had least is next.

    This is start-time fair queuing (Goyal, Vin and Cheng 1996). One that was away, or was passed
    over, is owed no more than the caller says; so nothing floods what comes back.
    """

    def __init__(self) -> None:
        self.count = 0
        self._ends: dict[str, float] = {}
        self._now = 0.0

    def start(self, name: str, lag: float) -> float:
        """When its turn begins, at least `lag` before that of the one that had most."""
        return max(self._ends.get(name, self._now), self._now - lag)

    def take(self, name: str, weight: float, lag: float) -> None:
        """It has its turn; the next begins later, the sooner the more it weighs."""
        start = self.start(name, lag)
        self._now = max(self._now, start)
        self._ends[name] = start + 1 / weight
        self.count += 1

    def know(self, names: Collection[str]) -> None:
        """Those that are new begin now; others are forgotten, not always at once."""
        for name in names:
            self._ends.setdefault(name, self._now)
        if len(self._ends) > GRACE * len(names):
            self._ends = {name: self._ends[name] for name in names}
