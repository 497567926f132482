"""What `tokenway up` leaves for other commands, and what they make of old files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.launcher.process_start import process_start
from services.launcher.run_file import NotRunning, Run, RunFile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def rewrite(file: RunFile, **changes: object) -> None:
    told = json.loads(file.path.read_text())
    file.path.write_text(json.dumps(told | changes))


@pytest.fixture
def file(tmp_path: Path) -> RunFile:
    written = RunFile(tmp_path)
    written.write("http://127.0.0.1:1", [])
    return written


def test_a_file_of_a_live_launcher_is_read_and_goes_with_it(file: RunFile) -> None:
    assert file.read() == Run(url="http://127.0.0.1:1", services=[])
    file.remove()
    assert not file.path.exists()


def test_the_file_of_another_launcher_stays(file: RunFile) -> None:
    rewrite(file, pid=os.getppid())
    file.remove()
    assert file.path.exists()


def test_a_missing_file_says_what_to_start(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match=r"run\.json is not there; start the services by"):
        RunFile(tmp_path).read()


def test_a_file_that_was_left_behind_is_no_stack(file: RunFile) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    rewrite(file, pid=process.pid)
    with pytest.raises(NotRunning, match="of a run that is over"):
        file.read()


def test_another_process_with_the_same_id_is_not_the_launcher(file: RunFile) -> None:
    rewrite(file, started=1)
    with pytest.raises(NotRunning, match="of a run that is over"):
        file.read()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"pid": 1, "started": 1, "url": "", "services": [1]}']
)
def test_a_file_that_is_none_of_ours_is_refused(file: RunFile, text: str) -> None:
    file.path.write_text(text)
    with pytest.raises(NotRunning, match="cannot be read"):
        file.read()


def test_a_process_is_told_from_a_later_one_by_its_start() -> None:
    own = process_start(os.getpid())
    assert own is not None
    assert own == process_start(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = process_start(child.pid)
        assert started is not None
        assert started >= own
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(child.pid) is None  # dead, though not yet buried
    assert process_start(child.pid) is None
