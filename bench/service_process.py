"""A service as a child process of a benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.shared.announce import announced

ROOT = Path(__file__).parents[1]
STOP_S = 10
DEFAULTS: Mapping[str, Any] = {
    "telemetry": {"log_level": "warning"},
    "security": {"mtls": False},
}


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running service: its process and where its doors listen."""

    pid: int
    doors: Mapping[str, str]

    def cpu_seconds(self) -> float:
        """CPU time that it has used, in hundredths of a second."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def service_process(module: str, settings: Mapping[str, Any]) -> Iterator[ServiceProcess]:
    """Runs `python -m module` with these settings."""
    environ = {"TOKENWAY_SERVICE__LIMITS__SETTLE_S": "0", **os.environ}
    environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'stubs'}"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        config.write(json.dumps({**DEFAULTS, **settings}))
        config.flush()
        process = subprocess.Popen(
            [sys.executable, "-m", module, "--config", config.name],
            stdout=subprocess.PIPE,
            text=True,
            env=environ,
        )
        try:
            yield ServiceProcess(process.pid, _doors(process))
        finally:
            process.terminate()
            process.wait(STOP_S)


@contextmanager
def service(module: str, settings: Mapping[str, Any], door: str = "grpc") -> Iterator[str]:
    """The address of one of its doors."""
    with service_process(module, settings) as running:
        yield running.doors[door]


def _doors(process: subprocess.Popen[str]) -> Mapping[str, str]:
    assert process.stdout is not None  # noqa: S101  # a pipe was asked for
    for line in process.stdout:
        doors = announced(line)
        if doors is not None:
            return doors
    raise RuntimeError(f"the service ended with status {process.wait()} before it listened")
