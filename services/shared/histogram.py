"""A distribution in plain numbers, for whoever keeps figures and knows no one who reads them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

WAIT_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for times that somebody waits."""


class Histogram:
    """One writer; whoever reads beside it may miss the last values.

    Args:
        bounds: of the buckets, upper ones that belong to them, growing; one more is for the rest.

    Attributes:
        counts: values by bucket.
        total: their sum.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts)

    def note(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
