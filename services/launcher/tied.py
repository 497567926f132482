"""Runs a command that dies with the process that wanted it; started as a file, without imports.

usage: tied.py PARENT COMMAND [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    parent, *command = argv
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != int(parent):  # it died before the line above
            sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 the launcher's own command; no shell


if __name__ == "__main__":
    main(sys.argv[1:])
