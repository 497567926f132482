"""The record of a generation's way to a replica, kept for a test."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class KeptAttempt:
    """Ends once."""

    traceparent: str = ""
    ends: list[str] = field(default_factory=list)

    def close(self, end: str) -> None:
        assert not self.ends
        self.ends.append(end)
