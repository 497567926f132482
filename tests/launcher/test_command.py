"""The command line finds its commands, and imports none but the one that is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from services.launcher.__main__ import COMMANDS, main


@pytest.mark.parametrize("module", [module for module, _ in COMMANDS.values()])
def test_every_command_has_its_module(module: str) -> None:
    assert find_spec(module) is not None


@pytest.mark.parametrize("argv", [[], ["serve"], ["--version"]])
def test_an_unknown_command_is_refused_with_the_known_ones(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(argv)
    assert "COMMAND" in capsys.readouterr().err


def test_a_router_and_a_probe_need_neither_torch_nor_numpy() -> None:
    script = (
        "import sys; from services.launcher.__main__ import main, COMMANDS\n"
        "from importlib import import_module\n"
        "for name in ('probe', 'router', 'chat', 'up'): import_module(COMMANDS[name][0])\n"
        "import_module('services.router.__main__')\n"
        "print({'torch', 'numpy', 'tokenizers', 'jinja2'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(command, check=True, capture_output=True, env=environ, timeout=60)  # noqa: S603 ours
    assert told.stdout == b"set()\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [("none.gguf", "none.gguf is not there"), ("no_such_package_here", "is not there")],
)
def test_an_import_that_fails_names_its_source(
    tmp_path: Path, source: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "import", source, str(tmp_path / "model")]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("tokenway model import: ")
    assert said in last


def test_an_import_never_replaces_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "import", "x.gguf", str(tmp_path)]) == 1
    assert "is already there: remove it to import again" in capsys.readouterr().err
