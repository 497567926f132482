"""A service as a child process of a benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.shared.announce import announced

ROOT = Path(__file__).parents[1]
STOP_S = 10


@contextmanager
def service(module: str, settings: Mapping[str, Any], door: str = "grpc") -> Iterator[str]:
    """Runs `python -m module` with these settings; gives the address of one of its doors."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(json.dumps({"telemetry": {"log_level": "warning"}, **settings}))
        config.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--config", config.name],
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        try:
            yield _address(process, door)
        finally:
            process.terminate()
            process.wait(STOP_S)


def _address(process: subprocess.Popen[str], door: str) -> str:
    assert process.stdout is not None  # noqa: S101  # a pipe was asked for
    for line in process.stdout:
        doors = announced(line)
        if doors is not None:
            return doors[door]
    raise RuntimeError(f"the service ended with status {process.wait()} before it listened")
