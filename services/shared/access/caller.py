"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Whom a request is from, as what it showed proves; nothing of it is the caller's choice.

    Args:
        tenant: whose limits, share and cache it uses; None where nobody is asked for a key.
        key_id: names what it showed, in logs; no secret.
    """

    tenant: str | None = None
    key_id: str | None = None


ANYBODY = Caller()
"""Asks where nobody needs a key."""
