"""Each service starts with what its own image installs, and needs nothing of the others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = {"codec": {"codec"}, "router": {"router"}, "engine": {"engine", "cache"}}
OF_ALL = {"services", "tokenway"}

ONLY = """
import importlib, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

hidden = set(sys.argv[2].split(","))
sys.meta_path.insert(0, Hidden())
importlib.import_module(sys.argv[1])
"""


def installed(extras: set[str]) -> set[str]:
    """Names of the packages that come with the project and its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for extra in extras for line in project["optional-dependencies"][extra]]
    found: set[str] = set()
    left = [_wanted(Requirement(line)) for line in (*project["dependencies"], *lines)]
    done: set[tuple[str, frozenset[str]]] = set()
    while left:
        name, wanted = left.pop()
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        found.add(name)
        for line in metadata.requires(name) or ():
            one = Requirement(line)
            places = [{"extra": extra} for extra in (*wanted, "")]
            if one.marker is None or any(one.marker.evaluate(place) for place in places):
                left.append(_wanted(one))
    return found


def _wanted(one: Requirement) -> tuple[str, frozenset[str]]:
    return str(canonicalize_name(one.name)), frozenset(one.extras)


@pytest.mark.parametrize("service", EXTRAS)
def test_a_service_needs_nothing_that_its_image_has_not(service: str) -> None:
    own = installed(EXTRAS[service])
    hidden = {
        module
        for module, packages in metadata.packages_distributions().items()
        if not {str(canonicalize_name(package)) for package in packages} & own
    }
    assert "pytest" in hidden
    command = [
        sys.executable,
        "-c",
        ONLY,
        f"services.{service}.__main__",
        ",".join(hidden - OF_ALL),
    ]
    told = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)  # noqa: S603 our own source
    assert told.returncode == 0, told.stderr
