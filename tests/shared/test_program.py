"""A process starts, tells where it listens, drains on a signal, and says why it will not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from services.shared.announce import announced
from services.shared.program import REFUSED

PROGRAM = """
import asyncio, sys
from dataclasses import dataclass, field
from services.shared.announce import announce
from services.shared.program import Program
from services.shared.server import serving
from services.shared.settings import ServerSettings, TelemetrySettings

@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    server: ServerSettings
    patient: bool = False
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

async def serve(settings, stop):
    async with serving(settings.server.address, lambda server: None, []) as door:
        announce({"grpc": door.address})
        await stop.asked()
        await stop.settled(3600 if settings.patient else 0)
    print("drained")

sys.exit(Program(name="test", settings=Settings, aliases={}, serve=serve).run(sys.argv[1:]))
"""


@contextmanager
def started(folder: Path, config: str) -> Iterator[subprocess.Popen[str]]:
    path = folder / "test.yaml"
    path.write_text(config)
    command = [sys.executable, "-c", PROGRAM, "--config", str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=os.environ) as child:  # noqa: S603 ours
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_tells_where_it_listens_and_drains_on_a_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    with started(tmp_path, "server: {port: 0}") as child:
        assert child.stdout is not None
        doors = announced(child.stdout.readline())
        assert doors is not None
        assert not doors["grpc"].endswith(":0")
        child.send_signal(number)
        assert child.communicate(timeout=60) == ("drained\n", "")
        assert child.returncode == 0


def test_a_second_signal_ends_the_settle_time(tmp_path: Path) -> None:
    with started(tmp_path, "{server: {port: 0}, patient: true}") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.2)
        child.send_signal(signal.SIGTERM)
        assert child.communicate(timeout=60) == ("drained\n", "")
        assert child.returncode == 0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("server: {prt: 0}", "server.prt is unknown"),
        ("server: {port: 0, host: 192.0.2.1}", "cannot listen at 192.0.2.1:0"),
    ],
)
def test_a_start_that_is_refused_ends_with_one_line_that_says_why(
    tmp_path: Path, config: str, said: str
) -> None:
    with started(tmp_path, config) as child:
        out, err = child.communicate(timeout=60)
    last = json.loads(err.splitlines()[-1])
    assert (last["level"], last["service"]) == ("error", "test")
    assert said in last["message"]
    assert "exception" not in last
    assert (out, child.returncode) == ("", REFUSED)
