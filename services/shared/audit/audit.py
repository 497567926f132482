"""Where services tell what is to be noted."""

from __future__ import annotations

from typing import Protocol

from services.shared.audit.event import AuditEvent


class Audit(Protocol):
    """Takes events of any thread, at once."""

    @property
    def written(self) -> int:
        """Events that are in the file."""

    @property
    def dropped(self) -> int:
        """Events that are not, and were told in the log instead."""

    def note(self, event: AuditEvent) -> None: ...


class NoAudit:
    """Where no file is named."""

    written = 0
    dropped = 0

    def note(self, event: AuditEvent) -> None:
        """Nobody wants to know."""


NO_AUDIT = NoAudit()
