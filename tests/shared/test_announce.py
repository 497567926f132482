"""The line that tells where a process listens."""

from __future__ import annotations

import json

import pytest

from services.shared.announce import announce, announced


def test_announcements_are_read_back_and_other_lines_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    announce({"grpc": "127.0.0.1:9100", "http": "127.0.0.1:8080"})
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert announced(line) == {"grpc": "127.0.0.1:9100", "http": "127.0.0.1:8080"}
    for other in ("", "hello", "[1]", json.dumps({"listening": 1}), "{}"):
        assert announced(other) is None
