"""A client and all that it leaves behind ends with its run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clients import contained

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
{rest}
"""


def run(seconds: float, rest: str) -> tuple[int, int]:
    """The exit status, and the process ID of a daemon that was left behind."""
    own = (sys.executable, contained.__file__, str(seconds))
    with subprocess.Popen(  # noqa: S603 ours
        [*own, sys.executable, "-c", DAEMON.format(rest=rest)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        daemon = int(process.stdout.readline())
        return process.wait(60), daemon


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")
@pytest.mark.parametrize(
    ("seconds", "rest", "expected"),
    [(60, "sys.exit(3)", 3), (1, "time.sleep(600)", contained.TIMED_OUT)],
)
def test_daemons_end_with_the_command_however_it_ends(
    seconds: float, rest: str, expected: int
) -> None:
    status, daemon = run(seconds, rest)
    assert status == expected
    assert not Path(f"/proc/{daemon}").exists()
