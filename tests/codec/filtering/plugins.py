"""Filters as somebody else would write them, found by entry points in a folder of the test's."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from services.codec.filtering.content_filter import (
    GROUP,
    Blocked,
    Cleared,
    OutputMatcher,
    Passage,
    Refused,
    Ruling,
)


class Raising:
    """Fails on what it is named for: prompts, or outputs."""

    def __init__(self, *, on_prompts: bool) -> None:
        self._on_prompts = on_prompts

    def check_prompt(self, passages: Sequence[Passage]) -> Refused | None:
        if self._on_prompts:
            raise RuntimeError(f"secret {passages[0].texts}")
        return None

    def output_matcher(self) -> OutputMatcher:
        return _RaisingMatcher()


class _RaisingMatcher:
    def push(self, text: str) -> Ruling:
        raise RuntimeError(f"secret {text}")

    def pause(self) -> Ruling:
        raise RuntimeError("secret")


class Hanging(Raising):
    """Prompts wait until the test lets go."""

    let_go = threading.Event()

    def __init__(self) -> None:
        super().__init__(on_prompts=False)

    def check_prompt(self, passages: Sequence[Passage]) -> Refused | None:
        del passages
        self.let_go.wait()
        return None


class Untrue(Raising):
    """Clears what it has not seen."""

    def __init__(self) -> None:
        super().__init__(on_prompts=False)

    def output_matcher(self) -> OutputMatcher:
        return _UntrueMatcher()


class _UntrueMatcher:
    def push(self, text: str) -> Ruling:
        return Cleared(len(text) + 1)

    def pause(self) -> Ruling:
        return Blocked(0, "r")


def raising(path: Path | None) -> Raising:
    del path
    return Raising(on_prompts=True)


def raising_on_outputs(path: Path | None) -> Raising:
    del path
    return Raising(on_prompts=False)


def hanging(path: Path | None) -> Hanging:
    del path
    return Hanging()


def untrue(path: Path | None) -> Untrue:
    del path
    return Untrue()


def installed(folder: Path, **targets: str) -> str:
    """A distribution in the folder with these entry points; what to put on the path."""
    info = folder / "some_filters-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-filters\nVersion: 1.0\n")
    points = "\n".join(f"{name} = {target}" for name, target in targets.items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
    return str(folder)
