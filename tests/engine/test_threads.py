"""The process has one thread pool of a bounded patience."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.engine import threads
from services.engine.threads import SPIN_COUNT, prepare_threads, usable_cores

ROOT = Path(__file__).parents[2]

REPORT = """
from services.engine.threads import prepare_threads, shares_pool
prepare_threads(2)
import os, torch, numba
@numba.njit(parallel=True)
def count(n):
    total = 0
    for _ in numba.prange(n):
        total += 1
    return total
assert count(10) == 10
print(numba.get_num_threads(), numba.threading_layer(),
      shares_pool(), os.environ.get("GOMP_SPINCOUNT"))
"""


def report(**environment: str) -> list[str]:
    done = subprocess.run(  # noqa: S603 -- this Python, a fixed script
        [sys.executable, "-c", REPORT],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.skipif(ctypes.util.find_library("gomp") is None, reason="no libgomp on this system")
def test_torch_and_numba_run_on_one_pool_of_the_given_size() -> None:
    assert report() == ["2", "omp", "True", str(SPIN_COUNT)]


def test_a_spin_count_of_the_environment_stands() -> None:
    assert report(GOMP_SPINCOUNT="7")[-1] == "7"
    assert report(OMP_WAIT_POLICY="PASSIVE")[-1] == "None"


def test_it_is_too_late_when_torch_is_there() -> None:
    import torch  # noqa: F401, PLC0415 -- the point of the test

    with pytest.raises(RuntimeError, match="before torch or numba"):
        prepare_threads(2)


@pytest.mark.parametrize(
    ("limit", "cores"), [("max 100000", 8), ("250000 100000", 2), ("1 100", 1)]
)
def test_cores_are_bounded_by_the_containers_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, cores: int
) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(f"{limit}\n")
    monkeypatch.setattr(threads, "CPU_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cores() == cores
