"""Why a process ended is read from what it said."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from services.launcher.last_words import TAIL_BYTES, last_words

INFO = json.dumps({"level": "info", "message": "starting"})
ERROR = json.dumps({"level": "error", "message": "config.json is missing"})
BUG = json.dumps({"level": "error", "message": "crashed", "exception": "Trace\n  x\nKeyError: 'x'"})


@pytest.mark.parametrize(
    ("said", "status", "words"),
    [
        (f"{INFO}\n{ERROR}\n{INFO}\n", 2, "config.json is missing"),
        (f"{BUG}\n", 1, "crashed: KeyError: 'x'"),
        (f"{INFO}\nTraceback:\n  File\nValueError: bad\n\n", 1, "ValueError: bad"),
        ("", 3, "ended with status 3 and said nothing"),
        ("[1]\n", 1, "[1]"),
        (ERROR, -signal.SIGSEGV, "was ended by SIGSEGV"),
        (ERROR, -signal.SIGKILL, "was ended by SIGKILL (the machine may be out of memory)"),
        ("x" * 3 * TAIL_BYTES + f"\n{ERROR}", 1, "config.json is missing"),
    ],
)
def test_the_last_error_or_line_or_signal_tells(
    tmp_path: Path, said: str, status: int, words: str
) -> None:
    log = tmp_path / "log"
    before = "another run's ValueError\n"
    log.write_text(before + said)
    assert last_words(log, len(before), status) == words
