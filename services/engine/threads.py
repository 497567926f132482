"""Threads of the computation: how many, from one pool, and how long they spin for work.

This module imports neither torch nor numba: it must act before they load their OpenMP.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

# Long enough to be awake for the next kernel of a step, short enough to spare a neighbour:
# bench/spinning.py measures both.
SPIN_COUNT = 5000

SYSTEM_OPENMP = "libgomp.so.1"
CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def prepare_threads(threads: int | None) -> None:
    """Sets up the thread pool of this process; call it before anything imports torch.

    numba's OpenMP layer needs the system's libgomp, torch brings its own; loaded first, the
    system's serves both, so that kernels and linear layers share one pool. Where it is missing,
    the kernels run serially. OMP_WAIT_POLICY and GOMP_SPINCOUNT of the environment stand.

    Args:
        threads: how many, or None for one on each core that this process may use.
    """
    if "torch" in sys.modules or "numba" in sys.modules:
        raise RuntimeError("prepare_threads must be called before torch or numba is imported")
    count = str(threads or usable_cores())
    os.environ["OMP_NUM_THREADS"] = count
    os.environ["NUMBA_NUM_THREADS"] = count
    os.environ["NUMBA_THREADING_LAYER"] = "omp"
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(SPIN_COUNT))
    try:
        ctypes.CDLL(SYSTEM_OPENMP, mode=ctypes.RTLD_GLOBAL)
    except OSError:
        logger.warning("%s is not installed, kernels will run on one thread", SYSTEM_OPENMP)


def usable_cores() -> int:
    """Cores that the affinity mask and the container's quota leave, at least one."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if CPU_QUOTA.is_file():
        quota, period = CPU_QUOTA.read_text().split()
        if quota != "max":
            cores = min(cores, int(quota) // int(period))
    return max(cores, 1)


def shares_pool() -> bool:
    """Whether torch and numba, once loaded, run on the same OpenMP threads."""
    maps = Path("/proc/self/maps")
    if os.environ.get("NUMBA_THREADING_LAYER") != "omp" or not maps.is_file():
        return False
    lines = maps.read_text().splitlines()
    return len({line.split()[-1] for line in lines if "libgomp" in line}) == 1
