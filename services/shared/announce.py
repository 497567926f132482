"""How a process tells whoever started it where it listens: one JSON line on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

KEY = "listening"


def announce(doors: Mapping[str, str]) -> None:
    """Writes `{"listening": {"grpc": "127.0.0.1:9100"}}`; doors are `grpc`, `http`, `metrics`."""
    sys.stdout.write(json.dumps({KEY: dict(doors)}) + "\n")
    sys.stdout.flush()


def announced(line: str) -> dict[str, str] | None:
    """The doors in a line of a process's stdout, or None when the line is no announcement."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    doors = value.get(KEY) if isinstance(value, dict) else None
    if not isinstance(doors, dict):
        return None
    return {str(name): str(address) for name, address in doors.items()}
