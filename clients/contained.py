"""Runs a command and ends all that it started, however it ends itself; started as a file. Linux.

usage: contained.py SECONDS COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
TIMED_OUT = 124


def main(argv: list[str]) -> int:
    """Gives the command's exit status, 124 when it did not end in time."""
    seconds, *command = argv
    libc = ctypes.CDLL(None, use_errno=True)
    # What its parents leave behind becomes our child, a daemon too.
    for option, value in ((PR_SET_CHILD_SUBREAPER, 1), (PR_SET_PDEATHSIG, signal.SIGTERM)):
        if libc.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TIMED_OUT))
    try:
        process = subprocess.Popen(command, start_new_session=True)  # noqa: S603 the caller's
        return process.wait(float(seconds))
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        _end_children()


def _end_children() -> None:
    own = os.getpid()
    listed = Path(f"/proc/{own}/task/{own}/children")
    while children := listed.read_text().split():
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        for child in children:
            os.waitpid(int(child), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
