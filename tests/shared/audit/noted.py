"""An audit file and what stands in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.shared.audit.audit_file import AuditFile
from services.shared.audit.event import DONE, AuditEvent
from tests.waiting import PATIENCE_S


def an_event(**fields: Any) -> AuditEvent:
    return AuditEvent(**{"action": "drain", "who": "address:::1", "outcome": DONE} | fields)


def events_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


@contextmanager
def noting(path: Path, **options: Any) -> Iterator[AuditFile]:
    """An audit that runs inside the block."""
    audit = AuditFile(path, "router", **options)
    audit.start()
    try:
        yield audit
    finally:
        audit.close(PATIENCE_S)
