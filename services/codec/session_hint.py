"""Headers by which clients name the session that a request belongs to."""

from __future__ import annotations

from collections.abc import Mapping

HEADERS = (
    "x-session-affinity",
    "x-session-id",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
)
"""The first that is there counts."""


def session_of(headers: Mapping[str, str]) -> str | None:
    """What the caller calls the session: a wish to meet the same replica again, no identity."""
    return next((name for header in HEADERS if (name := headers.get(header))), None)
