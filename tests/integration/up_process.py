"""`tokenway up` with engines that compute nothing, as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, ROOT

FREE_PORTS = [
    part for door in ("http", "grpc", "router", "engine") for part in (f"--{door}-port", "0")
]


@dataclass(frozen=True, kw_only=True)
class UpProcess:
    """A stack that is ready.

    `said` is what was told until then, `logs` the folder of its logs, `key_file` has its key.
    """

    process: subprocess.Popen[str]
    said: str
    logs: Path
    key_file: Path

    @property
    def headers(self) -> dict[str, str]:
        """Of a caller who has the key."""
        return {"authorization": f"Bearer {self.key_file.read_text()}"}

    @property
    def admin(self) -> Path:
        """The administrator's certificate."""
        return self.key_file.with_name("certs") / "admin"

    def line(self, first: str) -> str:
        """The one line that begins with that word."""
        (line,) = [line for line in self.said.splitlines() if line.startswith(f"{first} ")]
        return line

    def address(self, door: str) -> str:
        """`host:port` of http, grpc or router, and of the first engine."""
        found = re.search(rf"\b{door} ([\d.]+:\d+)", self.line("ports"))
        assert found is not None
        return found[1]

    def metrics(self, service: str) -> list[str]:
        """`host:port` of the metrics of codec or router, or of all engines."""
        found = re.search(rf"\b{service} ((?:[\d.]+:\d+(?:, )?)+)", self.line("metrics"))
        assert found is not None
        return [door for door in found[1].split(", ") if door]


@contextmanager
def up_process(folder: Path, model: ModelFolder, *options: str) -> Iterator[UpProcess]:
    """Logs, keys and cache lie in `folder`; at the end it is told to stop, and waited for."""
    command = [sys.executable, "-m", "services.launcher", "up", "--simulate", *FREE_PORTS]
    logs = folder / "logs"
    places = ("--key-dir", str(folder))
    own = {"TOKENWAY_CACHE__EMBEDDED__PATH": str(folder / "kv")}
    with subprocess.Popen(  # noqa: S603 our own program
        [*command, "--model", str(model.path), "--log-dir", str(logs), *places, *options],
        cwd=ROOT,
        env={**os.environ, **own, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said, key_file = _said_until_ready(process), folder / "dev.key"
            yield UpProcess(process=process, said=said, logs=logs, key_file=key_file)
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()


def _said_until_ready(process: subprocess.Popen[str]) -> str:
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        said += line
        if "Ctrl-C stops all" in line:
            return said
    pytest.fail(said)
