"""Where clients come from, and how they get into the cache: pinned, and apart from all else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
CACHE = ROOT / ".cache" / "clients"


class NotInstalled(Exception):
    """A registry or a package's own steps failed; the text is the last that they said."""


@dataclass(frozen=True, slots=True)
class Npm:
    """Packages of npm, each as `name@version`."""

    folder: str
    packages: tuple[str, ...]

    @property
    def home(self) -> Path:
        return CACHE / self.folder

    @property
    def programs(self) -> Path:
        return self.home / "node_modules" / ".bin"

    def versions(self) -> Mapping[str, str]:
        return dict(package.rsplit("@", 1) for package in self.packages)

    def install(self) -> None:
        """Raises NotInstalled."""
        options = ("--no-audit", "--no-fund", "--no-update-notifier")
        command = ("npm", "install", "--prefix", str(self.home), *options, *self.packages)
        _once(self.home, "\n".join(self.packages), command)


@dataclass(frozen=True, slots=True)
class Pypi:
    """Packages of PyPI in an environment of their own: all of a file of pins."""

    folder: str
    pins: Path

    @property
    def home(self) -> Path:
        return CACHE / self.folder

    @property
    def programs(self) -> Path:
        return self.home / "bin"

    def versions(self) -> Mapping[str, str]:
        lines = self.pins.read_text().splitlines()
        return dict(line.split("==", 1) for line in lines if "==" in line)

    def install(self) -> None:
        """Raises NotInstalled."""
        pip = (str(self.programs / "python"), "-m", "pip", "install", "-q", "-r", str(self.pins))
        environment = (sys.executable, "-m", "venv", str(self.home))
        _once(self.home, self.pins.read_text(), environment, pip)


def _once(home: Path, pins: str, *commands: tuple[str, ...]) -> None:
    """Runs the commands unless they have been run for the same pins."""
    ready = home / f"ready-{sha256(pins.encode()).hexdigest()[:16]}"
    if ready.is_file():
        return
    own_home = CACHE / "home"
    own_home.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "HOME": str(own_home)}
    for command in commands:
        if shutil.which(command[0]) is None:
            raise NotInstalled(f"{command[0]} is missing; it comes with Node.js 20 or newer")
        told = subprocess.run(  # noqa: S603 our own commands
            command, env=environ, capture_output=True, text=True, check=False
        )
        if told.returncode:
            raise NotInstalled(" ".join(told.stderr.split())[-300:])
    ready.touch()
