"""What README.md tells a newcomer to paste works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.launcher.dev_key import make_dev_key
from services.launcher.up_options import DEFAULT_KEYS
from tests.integration.stack import PATIENCE_S, ROOT, Stack

BLOCKS = re.findall(
    r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
PYTHON = [code for language, code in BLOCKS if language == "python"]
CURL = [code for _, code in BLOCKS if code.startswith("curl ")]
ADDRESS = "127.0.0.1:8080"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has a key where `tokenway up` makes one."""
    make_dev_key(tmp_path / DEFAULT_KEYS)
    return tmp_path


def pasted(stack: Stack, folder: Path, code: str, *command: str) -> str:
    """What the code prints in the folder, with the stack's address in place of the default one."""
    assert ADDRESS in code
    code = code.replace(ADDRESS, stack.codec.doors["http"])
    told = subprocess.run(  # noqa: S603 our own README
        [*command, code],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=folder,
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_every_way_in_is_there() -> None:
    assert [code.split()[1] for code in PYTHON] == ["openai", "anthropic"]
    assert len(CURL) == 1


@pytest.mark.parametrize("code", PYTHON, ids=["openai", "anthropic"])
def test_python_prints_a_whole_and_a_streamed_answer(stack: Stack, folder: Path, code: str) -> None:
    ask, _, stream = code.partition("\n\n")[2].partition("\n\n")
    start = code.partition("\n\n")[0] + "\n"
    key, client, *_ = ask.splitlines()
    for part in (f"{start}{ask}", f"{start}{key}\n{client}\n{stream}"):
        said = pasted(stack, folder, part, sys.executable, "-c")
        assert len(re.findall(r"[A-Za-z]{2,}", said)) >= 3, said


@pytest.mark.parametrize("code", CURL)
def test_curl_prints_server_sent_events(stack: Stack, folder: Path, code: str) -> None:
    told = pasted(stack, folder, code, "bash", "-c")
    assert told.startswith("data: {")
    assert told.endswith("data: [DONE]\n\n")
    words = re.findall(r'"content":"([^"]+)"', told)
    assert len(re.findall(r"[A-Za-z]{2,}", "".join(words))) >= 3
