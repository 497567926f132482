"""`tokenway up` with real processes: ready, restarted, stopped, and clear when it fails."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("service_child.py")
UP = """
import os, sys
os.environ["GRPC_VERBOSITY"] = "ERROR"  # as services.launcher.__main__ does
from services.launcher.up import main
sys.exit(main(sys.argv[2:], lambda service: (sys.executable, sys.argv[1], service)))
"""
PATIENCE_S = 60
FREE_PORTS = [
    part for door in ("http", "grpc", "router", "engine") for part in (f"--{door}-port", "0")
]


@dataclass(frozen=True)
class Up:
    """A running `tokenway up` and what its services told."""

    process: subprocess.Popen[str]
    folder: Path
    said: list[str]

    def until(self, text: str) -> str:
        """Reads on to a line with that text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return line
        pytest.fail(f"no line with {text!r} in {''.join(self.said)}")

    def rest(self) -> str:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert out == ""
        self.said.extend(err.splitlines(keepends=True))
        return "".join(self.said)

    def events(self, service: str, kind: str) -> list[list[str]]:
        lines = (self.folder / "events").read_text().splitlines()
        found = [line.split() for line in lines]
        return [words[2:] for words in found if words[:2] == [service, kind]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small-model").mkdir()
    (tmp_path / "small-model" / "config.json").write_text("{}")
    return tmp_path


@contextlib.contextmanager
def up(folder: Path, *options: str, **environ: str) -> Iterator[Up]:
    command = [sys.executable, "-c", UP, str(CHILD)]
    command += ["--model", str(folder / "small-model"), "--log-dir", str(folder / "logs")]
    command += ["--key-dir", str(folder / "own")]
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "EVENTS": str(folder / "events")}
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 our own program
        [*command, *FREE_PORTS, *options],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env={**os.environ, **paths, **environ},
    ) as process:
        watchdog = threading.Timer(PATIENCE_S, process.kill)
        watchdog.start()
        try:
            yield Up(process, folder, [])
        finally:
            watchdog.cancel()
            process.kill()


def is_gone(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    # A zombie whose new parent has not read its status yet has no command any more.
    return not Path(f"/proc/{pid}/cmdline").read_bytes()


def wait_until_gone(pid: str) -> None:
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(int(pid))
        ended, _, _ = select.select([descriptor], [], [], PATIENCE_S)
        os.close(descriptor)
        assert ended, f"process {pid} lives on"


def test_all_start_in_order_say_what_was_decided_and_stop_on_ctrl_c(folder: Path) -> None:
    with up(folder, "--replicas", "2") as run:
        run.until("Ctrl-C stops all")
        said = "".join(run.said)
        engines = [words[1] for words in run.events("engine", "started")]
        ((_, router, *replicas),) = run.events("router", "started")
        assert sorted(replicas) == sorted(engines)
        assert f"router {router}, engine " in said
        for line in (
            "model    small-model (0123456789ab) on cpu",
            "context  8192 tokens, vocabulary 49152",
            "blocks   1000 of 16 tokens per engine: 16000 tokens",
            "cache    embedded in .tokenway/kv, for all engines of this machine",
            "per engine, 2 engine(s)",
            '"model": "small-model"',
        ):
            assert line in said
        run.process.send_signal(signal.SIGINT)
        assert run.rest().endswith("stopping; Ctrl-C again ends all at once\n")
        assert run.process.returncode == 0
        lines = (folder / "events").read_text().splitlines()
        ended = [line.split()[0] for line in lines if " ended " in line]
        assert ended == ["codec", "router", "engine", "engine"]


def test_services_show_certificates_that_are_made_here(folder: Path) -> None:
    with up(folder, "--replicas", "2", TOKENWAY_SECURITY__MTLS="true") as run:
        run.until("Ctrl-C stops all")
    made = folder / "own" / "certs"
    assert f"mesh     mutual TLS, certificates in {made}\n" in run.said
    names = {"ca", "engine-0", "engine-1", "router", "codec", "admin", "client"}
    assert {path.name for path in made.iterdir()} == names
    before = [(made / name / "cert.pem").read_bytes() for name in sorted(names - {"ca"})]
    with up(folder, "--replicas", "2", TOKENWAY_SECURITY__MTLS="true") as run:
        run.until("Ctrl-C stops all")
    assert before == [(made / name / "cert.pem").read_bytes() for name in sorted(names - {"ca"})]


def test_services_without_certificates_are_told_of_aloud(folder: Path) -> None:
    with up(folder, TOKENWAY_SECURITY__MTLS="false") as run:
        assert "IN THE CLEAR" in run.until("mesh ")
    assert not (folder / "own" / "certs").exists()


def test_a_broken_authority_is_named(folder: Path) -> None:
    authority = folder / "own" / "certs" / "ca"
    authority.mkdir(parents=True)
    (authority / "ca.pem").write_text("broken")
    with up(folder, TOKENWAY_SECURITY__MTLS="true") as run:
        last = run.rest().splitlines()[-1]
    assert last == (
        f"tokenway up: {authority / 'ca.pem'} holds no certificates in PEM; remove "
        f"{authority.parent}, and another authority is made"
    )
    assert run.process.returncode == 1


def test_engines_that_prefill_are_started_and_told(folder: Path) -> None:
    with up(folder, "--replicas", "2", "--prefill", "1", TOKENWAY_CACHE__TYPE="none") as run:
        run.until("Ctrl-C stops all")
        said = "".join(run.said)
        assert "per engine, 3 engines: 2 decode, 1 prefill" in said
        assert "cache    none\n" in said
        assert len(run.events("engine", "started")) == 3


def test_a_cache_that_cannot_be_used_stops_nothing_and_is_told(folder: Path) -> None:
    with up(folder, FAIL_CACHE="none") as run:
        run.until("Ctrl-C stops all")
    told = "cache    none, since embedded cannot be used: the engine's log tells why\n"
    assert told in run.said


def test_a_folder_that_cannot_be_written_stops_nothing_and_is_told(folder: Path) -> None:
    path = folder / "small-model" / "config.json" / "kv"
    with up(folder, TOKENWAY_CACHE__EMBEDDED__PATH=str(path)) as run:
        run.until("Ctrl-C stops all")
    assert f"cache    none, since {path} cannot be written\n" in run.said


def test_what_dies_is_started_again_where_it_was_and_that_is_said(folder: Path) -> None:
    with up(folder) as run:
        run.until("Ctrl-C stops all")
        ((pid, address, *_),) = run.events("router", "started")
        os.kill(int(pid), signal.SIGKILL)
        assert run.until("starts again").startswith("router was ended by SIGKILL")
        run.until("router runs again")
        _, (again, same, *_) = run.events("router", "started")
        assert again != pid
        assert same == address
        run.process.send_signal(signal.SIGTERM)
        run.rest()
        assert run.process.returncode == 0
        assert is_gone(again)


def test_children_die_with_a_launcher_that_is_killed(folder: Path) -> None:
    with up(folder) as run:
        run.until("Ctrl-C stops all")
        run.process.kill()
        run.process.wait(PATIENCE_S)
        for service in ("engine", "router", "codec"):
            ((pid, *_),) = run.events(service, "started")
            wait_until_gone(pid)


def test_a_service_that_will_not_end_is_ended(folder: Path) -> None:
    with up(folder, "--drain-s", "0.5", STUBBORN="router") as run:
        run.until("Ctrl-C stops all")
        ((pid, *_),) = run.events("router", "started")
        run.process.send_signal(signal.SIGTERM)
        run.rest()
        assert run.process.returncode == 0
        assert is_gone(pid)


def test_a_service_that_refuses_its_settings_is_the_last_line(folder: Path) -> None:
    with up(folder, FAIL_EARLY="router") as run:
        last = run.rest().splitlines()[-1]
    assert last == (
        "tokenway up: router did not start: executor.threads must be >= 1, got 0; "
        "change that setting and start again"
    )
    assert run.process.returncode == 1
    assert run.events("engine", "ended")


def test_a_service_that_crashes_before_it_is_ready_is_the_last_line(folder: Path) -> None:
    with up(folder, FAIL_LATE="engine") as run:
        last = run.rest().splitlines()[-1]
    log = folder / "logs" / "engine-0.log"
    assert last == (
        "tokenway up: engine 0 did not start: RuntimeError: the weights burnt; "
        f"{log} has all that it said"
    )
    assert "Traceback" in log.read_text()


def test_a_taken_port_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with up(folder, "--router-port", str(port)) as run:
            last = run.rest().splitlines()[-1]
    assert f"router did not start: cannot listen at 127.0.0.1:{port}" in last
    assert last.endswith("choose other ports (tokenway up --help)")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "none"], "none/config.json is missing; make the default model with `make mod"),
        (["--config-dir", "none"], "none is missing; name a folder of settings by --config-dir"),
    ],
)
def test_a_missing_folder_is_named_with_its_remedy(
    folder: Path, options: list[str], said: str
) -> None:
    with up(folder, *options) as run:
        last = run.rest().splitlines()[-1]
    assert last.startswith(f"tokenway up: {said}")
    assert run.process.returncode == 1


def test_a_settings_file_that_cannot_be_read_is_named(folder: Path) -> None:
    (folder / "engine.yaml").write_text("server: {port: 1")
    with up(folder, "--config-dir", str(folder)) as run:
        last = run.rest().splitlines()[-1]
    assert last.startswith(f"tokenway up: {folder}/engine.yaml is not YAML")
