"""What a process that ended said last: the one line that tells an operator why."""

from __future__ import annotations

import json
import signal
from pathlib import Path

TAIL_BYTES = 64 * 1024


def last_words(log: Path, start: int, status: int) -> str:
    """Why a process ended.

    Args:
        log: what it wrote to stderr.
        start: where in the file its own lines begin, in bytes.
        status: its exit status; a signal's number below zero where a signal ended it.
    """
    if status < 0:
        name = signal.Signals(-status).name
        hint = " (the machine may be out of memory)" if -status == signal.SIGKILL else ""
        return f"was ended by {name}{hint}"
    lines = [line for line in _tail(log, start).splitlines() if line.strip()]
    errors = [message for line in lines if (message := _error(line)) is not None]
    if errors:
        return errors[-1]
    return lines[-1].strip() if lines else f"ended with status {status} and said nothing"


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(start, size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def _error(line: str) -> str | None:
    """The message of a log line of level error, with the exception's own line where one is."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("level") not in {"error", "critical"}:
        return None
    exception = str(record.get("exception", "")).strip()
    message = str(record.get("message", ""))
    return f"{message}: {exception.splitlines()[-1]}" if exception else message
