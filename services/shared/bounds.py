"""Bounds of numeric settings."""

from __future__ import annotations


def within(key: str, value: float | None, low: float, high: float) -> None:
    """Raises ValueError naming key, limits and value; None is unset and passes."""
    if value is not None and not low <= value <= high:
        raise ValueError(f"{key} must be between {low} and {high}, got {value}")


def at_least(key: str, value: float | None, low: float) -> None:
    """Raises ValueError naming key, limit and value; None is unset and passes."""
    if value is not None and not value >= low:
        raise ValueError(f"{key} must be >= {low}, got {value}")
