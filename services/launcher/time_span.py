"""Lengths of time as people write them: 90s, 15m, 12h, 30d."""

from __future__ import annotations

from datetime import timedelta

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_DAYS = 36500


def time_span(text: str) -> timedelta | None:
    """None for what has no unit at its end. Longer ones are a hundred years.

    Raises OverflowError or ValueError for what has one and no number before it.
    """
    unit = _UNITS_S.get(text[-1:])
    if unit is None:
        return None
    return min(timedelta(seconds=float(text[:-1]) * unit), timedelta(MAX_DAYS))
