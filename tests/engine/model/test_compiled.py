"""What kernels compute does not depend on how a process came by their code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def digest(cache: Path) -> str:
    told = subprocess.run(
        [sys.executable, "-m", "tests.engine.model.kernel_digest"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    return told.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty before the first process."""
    return tmp_path_factory.mktemp("cache")


def test_a_process_that_compiles_computes_what_one_does_that_loads(cache: Path) -> None:
    assert digest(cache) == digest(cache)


def test_each_variant_of_a_kernel_has_an_index_of_its_own(cache: Path) -> None:
    digest(cache)
    (index,) = cache.rglob("*.nbi")
    assert "_3_16_serial-" in index.name
