"""Drills against a stack of `tokenway up`: what they break, and what they tell of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from services.launcher import drill
from services.launcher.drill_stack import stack_of
from services.shared.model_folder import ModelFolder
from tests.integration.up_process import up_process


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("drills")
    # Told to stop, services keep on for a time that nobody here needs.
    (folder / "config").mkdir()
    for service in ("engine", "router", "codec"):
        text = "service: {limits: {settle_s: 0}}\n"
        (folder / "config" / f"{service}.yaml").write_text(text)
    options = ("--replicas", "2", "--config-dir", str(folder / "config"))
    with up_process(folder, model_folder, *options) as running:
        yield running.logs


def drilled(logs: Path, *arguments: str) -> int:
    return drill.main([*arguments, "--clients", "4", "--log-dir", str(logs), *key_of(logs)])


def key_of(logs: Path) -> tuple[str, str]:
    return ("--key-dir", str(logs.parent))


def pids(logs: Path) -> Sequence[int]:
    return [process.pid for process in stack_of(logs).processes]


@pytest.mark.parametrize(
    "arguments", [("kill",), ("stall", "--seconds", "1"), ("drain", "--seconds", "1"),
                  ("partition", "--seconds", "1")], ids=lambda arguments: arguments[0]
)  # fmt: skip
def test_clients_of_a_stack_with_a_second_engine_see_nothing_of_it(
    logs: Path, arguments: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = pids(logs)
    assert drilled(logs, *arguments, "--engine", "1") == 0
    told = capsys.readouterr().out
    asked, exact = re.findall(
        r"requests +(\d+) of 4 clients: (\d+) exact, 0 wrong, 0 failed", told
    )[0]
    assert asked == exact > "0"
    assert re.search(r"back +after \d", told)
    after = pids(logs)
    assert after[0] == before[0]
    assert (after[1] == before[1]) is (arguments[0] != "kill")


def test_an_engine_that_is_not_there_is_refused(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drilled(logs, "kill", "--engine", "2") == 2
    assert capsys.readouterr().err == "tokenway drill: engine must be < 2, got 2\n"


def test_a_stack_of_others_can_be_drained_and_not_killed(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = stack_of(logs)
    there = ["--url", stack.url, "--router", stack.router, "--clients", "2", "--seconds", "0"]
    there += key_of(logs)
    assert drill.main(["drain", *there]) == 0
    assert drill.main(["kill", *there]) == 2
    told = capsys.readouterr()
    assert "2 clients" in told.out
    assert "kill and stall need a stack of `tokenway up`" in told.err


def test_without_a_stack_a_drill_says_what_it_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drill.main(["drain", "--log-dir", str(tmp_path)]) == 2
    assert f"{tmp_path}/run.json is not there" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["kill", "--seconds", "601"], "must be between 0 and 600, got 601"),
        (["kill", "--clients", "0"], "must be between 1 and 64, got 0"),
        (["burn"], "invalid choice: 'burn'"),
        (["kill", "--url", "http://127.0.0.1:1"], "--url and --router go together"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        drill.main(arguments)
    assert told in capsys.readouterr().err


def test_the_file_goes_with_the_stack(tmp_path: Path, model_folder: ModelFolder) -> None:
    with up_process(tmp_path, model_folder, "--drain-s", "1") as running:
        logs = running.logs
        assert (logs / "run.json").exists()
    assert not (logs / "run.json").exists()
