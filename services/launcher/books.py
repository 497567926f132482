"""Where the services of one machine note what was asked and what was done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.launcher.kv_folder import can_hold

REQUESTS = "requests.db"
AUDIT = "audit.jsonl"
AUDIT_FILE = "TOKENWAY_SECURITY__AUDIT_FILE"
REQUEST_LOG_URL = "TOKENWAY_REQUEST_LOG__URL"


def books_of(service: str, filed: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """What a service is told, where its file says nothing of it.

    Args:
        service: engine, router or codec.
        filed: what its file says.
        folder: of this machine's own files; where nothing can be written nothing is noted.
    """
    if not can_hold(folder):
        return {}
    decided = {}
    if "audit_file" not in _section(filed, "security"):
        decided[AUDIT_FILE] = str(folder / AUDIT)
    if service == "codec" and "url" not in _section(filed, "request_log"):
        decided[REQUEST_LOG_URL] = f"sqlite:///{folder / REQUESTS}"
    return decided


def _section(filed: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Without one, or with something else in its place, which the service refuses: nothing."""
    said = filed.get(name)
    return said if isinstance(said, dict) else {}
