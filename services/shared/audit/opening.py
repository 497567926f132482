"""The audit that settings ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.shared.audit.audit import NO_AUDIT, Audit
from services.shared.audit.audit_file import AuditFile
from services.shared.tls.settings import MeshSettings

FLUSH_S = 5.0
"""How long at the end the last events have to reach the file."""


@asynccontextmanager
async def auditing(settings: MeshSettings, service: str) -> AsyncIterator[Audit]:
    """Writes events of a service inside the block, and those that wait at its end."""
    if settings.audit_file is None:
        yield NO_AUDIT
        return
    audit = AuditFile(settings.audit_file, service)
    audit.start()
    try:
        yield audit
    finally:
        await asyncio.to_thread(audit.close, FLUSH_S)
