"""What README.md tells a newcomer to paste works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.integration.stack import PATIENCE_S, ROOT, Stack

BLOCKS = re.findall(
    r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
PYTHON = [code for language, code in BLOCKS if language == "python"]
CURL = [code for _, code in BLOCKS if code.startswith("curl ")]
ADDRESS = "127.0.0.1:8080"


def pasted(stack: Stack, code: str, *command: str) -> str:
    """What the code prints, with the stack's address in place of the default one."""
    assert ADDRESS in code
    code = code.replace(ADDRESS, stack.codec.doors["http"])
    told = subprocess.run(  # noqa: S603 our own README
        [*command, code], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_every_way_in_is_there() -> None:
    assert [code.split()[1] for code in PYTHON] == ["openai", "anthropic"]
    assert len(CURL) == 1


@pytest.mark.parametrize("code", PYTHON, ids=["openai", "anthropic"])
def test_python_prints_a_whole_and_a_streamed_answer(stack: Stack, code: str) -> None:
    ask, _, stream = code.partition("\n\n")[2].partition("\n\n")
    start = code.partition("\n\n")[0] + "\n"
    for part in (f"{start}{ask}", f"{start}{ask.splitlines()[0]}\n{stream}"):
        said = pasted(stack, part, sys.executable, "-c")
        assert len(re.findall(r"[A-Za-z]{2,}", said)) >= 3, said


@pytest.mark.parametrize("code", CURL)
def test_curl_prints_server_sent_events(stack: Stack, code: str) -> None:
    told = pasted(stack, code, "bash", "-c")
    assert told.startswith("data: {")
    assert told.endswith("data: [DONE]\n\n")
    words = re.findall(r'"content":"([^"]+)"', told)
    assert len(re.findall(r"[A-Za-z]{2,}", "".join(words))) >= 3
