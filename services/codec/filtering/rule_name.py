"""Names of rules in logs and records."""

from __future__ import annotations

MAX_CHARACTERS = 64


def rule_name(name: str) -> str:
    """At most 64 characters, and none that would break a line."""
    return "".join(char if " " <= char <= "~" else "?" for char in name[:MAX_CHARACTERS])
