"""Limits of a request's values; what breaks one is told with field, limit and value."""

from __future__ import annotations

from collections.abc import Sequence

from services.shared.errors import InvalidRequest


def within(name: str, value: float | None, low: float, high: float) -> None:
    """Refuses values outside [low, high], NaN included; None passes."""
    if value is not None and not low <= value <= high:
        raise InvalidRequest(f"{name} must be {low} to {high}, got {value}", field=name)


def above_zero(name: str, value: float | None, high: float) -> None:
    """Refuses values outside (0, high], NaN included; None passes."""
    if value is not None and not 0 < value <= high:
        raise InvalidRequest(f"{name} must be above 0 and at most {high}, got {value}", field=name)


def at_most(name: str, value: Sequence[object], limit: int) -> None:
    """Refuses what is longer than `limit`."""
    if len(value) > limit:
        raise InvalidRequest(
            f"{name} must have at most {limit} entries, got {len(value)}", field=name
        )
