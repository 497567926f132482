"""What the C library does with memory that was freed."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
"""glibc's names, in mallopt(3)."""

LARGEST_BYTES = 32 * 2**20
KEPT_BYTES = 256 * 2**20


def keep_freed_memory() -> bool:
    """Has the C library keep pages that were freed, for what is allocated next.

    A message of a megabyte is allocated, filled and freed some four times on its way. New pages
    for each take longer than filling them: blocks between engines move twice as fast without.

    Returns: whether the C library can do so; only glibc does.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
