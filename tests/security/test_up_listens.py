"""`tokenway up` with the services themselves: it listens where it says, on 127.0.0.1 alone."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from services.launcher.__main__ import main
from services.launcher.dev_key import KEY
from services.launcher.up_options import DEFAULT_KEYS
from services.shared.access.guard import NO_KEY
from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S
from tests.integration.up_process import UpProcess, up_process
from tests.security.listening import family, listeners
from tests.security.test_inventory import table


@pytest.fixture
def up(model_folder: ModelFolder, tmp_path: Path) -> Iterator[UpProcess]:
    with up_process(tmp_path, model_folder, "--replicas", "2") as running:
        yield running


def test_all_that_listens_is_what_was_told_and_is_on_loopback(up: UpProcess) -> None:
    lines = up.line("ports") + up.line("metrics")
    told = set(re.findall(r"127\.0\.0\.1:\d+", lines))
    assert len(told) == 9
    assert listeners(up.process.pid) == told
    _, *services = family(up.process.pid)
    counts = Counter(service for service, *_ in table("Ports"))
    expected = [counts["codec"], counts["router"], counts["engine"], counts["engine"]]
    listening = [count for pid in services if (count := len(listeners(pid)))]
    assert sorted(listening) == sorted(expected)


def test_the_request_to_paste_is_answered_and_ctrl_c_ends_all(up: UpProcess) -> None:
    words = shlex.split(up.line("curl"))
    url = next(word for word in words if word.startswith("http://"))
    body = json.loads(words[words.index("-d") + 1]) | {"max_tokens": 5}
    assert httpx.post(url, json=body, timeout=PATIENCE_S).status_code == 401
    assert f"Authorization: Bearer $(cat {up.key_file})" in words
    answer = httpx.post(url, json=body, headers=up.headers, timeout=PATIENCE_S)
    assert answer.text.endswith("data: [DONE]\n\n")
    members = list(family(up.process.pid))
    assert len(members) > 4
    up.process.send_signal(signal.SIGINT)
    up.process.wait(PATIENCE_S)
    assert up.process.returncode == 0
    assert not any(Path(f"/proc/{member}").exists() for member in members[1:])


def test_connect_tells_the_key_of_this_machine_and_is_refused_without_one(
    up: UpProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["connect", "codex", "--url", f"http://{up.address('http')}"]
    monkeypatch.chdir(tmp_path)
    assert main(command) == 1
    assert NO_KEY in capsys.readouterr().err
    (tmp_path / DEFAULT_KEYS).mkdir()
    (tmp_path / DEFAULT_KEYS / KEY).write_text(up.key_file.read_text())
    assert main(command) == 0
    assert up.key_file.read_text() in capsys.readouterr().out
