"""When a process was started: with its ID, what tells it from any other."""

from __future__ import annotations

from pathlib import Path

_START = 19
"""Where it stands in /proc/PID/stat, counted from behind the command's name."""


def process_start(pid: int) -> int | None:
    """In ticks since the machine started; None where no such process lives or nobody tells."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets too.
    state, *fields = told.rpartition(")")[2].split()
    return None if state == "Z" else int(fields[_START - 1])
