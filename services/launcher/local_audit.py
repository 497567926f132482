"""What somebody does on this machine without a service, in the same audit file."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from services.launcher.books import AUDIT, AUDIT_FILE
from services.shared.audit.event import AuditEvent, line_of, told_of
from services.shared.audit.growing_file import GrowingFile


def audit_file(beside: Path, environ: Mapping[str, str]) -> Path:
    """Where the environment says that services note things, else beside the file of keys."""
    return Path(environ.get(AUDIT_FILE) or beside.parent / AUDIT)


def note_here(path: Path, service: str, action: str, what: str, outcome: str) -> None:
    """Adds a line with this process's user; without room for it the terminal is told."""
    event = AuditEvent(action=action, who=_user(), what=what, outcome=outcome)
    try:
        with closing(GrowingFile(path)) as file:
            file.add(line_of(told_of(service, event)))
            file.sync()
    except OSError as error:
        sys.stderr.write(f"tokenway {service}: {path} does not tell of it: {error.strerror}\n")


def _user() -> str:
    """The effective one; its number where it has no name."""
    number = os.geteuid()
    try:
        return f"user:{pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user:{number}"
