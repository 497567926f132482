"""The commit that a world ran on, since a seed means nothing without it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

ROOT = Path(__file__).parents[2]


def commit() -> str:
    """Its hash, `unknown` outside of a repository; changes that are not committed are not told."""
    git = which("git")
    if git is None:
        return "unknown"
    asked = subprocess.run(  # noqa: S603  # no words of a caller
        [git, "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() or "unknown"
