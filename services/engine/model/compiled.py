"""How numba compiles the kernels, and the exponential function that they share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

logger = logging.getLogger(__name__)

Kernel = Callable[..., None]

# No `ninf`: an infinite value stays what it is.
FAST = {"contract", "reassoc", "nsz", "nnan", "arcp"}


def inlined(function: Any, *, fast: bool = False) -> Any:
    """A part of kernels that never has code of its own.

    Code of its own would be made once more inside each kernel, in another order of sums, and which
    of the two a process runs would depend on whether it compiled the kernel or loaded it.
    """
    return njit(fastmath=FAST if fast else False, forceinline=True)(function)


def compiled(kernel: Any, arguments: str, *, parallel: bool, shape: tuple[int, ...] = ()) -> Kernel:
    """Compiles at once, or takes the code that an earlier start left in numba's cache.

    The cache sees changes of the file that holds `kernel`, and of no other.

    Args:
        kernel: what to compile.
        arguments: their types, as numba writes them.
        parallel: whether its loops over `prange` run on several threads.
        shape: sizes that are part of the code.
    """
    # Processes that add variants to one index at once lose or exchange them.
    kernel.__qualname__ += "".join(
        f"_{size}" for size in (*shape, "parallel" if parallel else "serial")
    )
    # By the numpy model a division has no branch for zero, which would keep a loop from being
    # vectorised.
    options = {"fastmath": FAST, "parallel": parallel, "nogil": True, "error_model": "numpy"}
    result: Kernel
    try:
        result = njit(f"void{arguments}", cache=True, **options)(kernel)
    except RuntimeError as error:
        logger.warning("kernels are compiled at each start, set NUMBA_CACHE_DIR: %s", error)
        result = njit(f"void{arguments}", **options)(kernel)
    return result


def _power_of_two(_: Any, exponent: Any) -> Any:
    """2 ** exponent as a float, for exponents from -126 to 127."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        biased = builder.add(arguments[0], ir.IntType(32)(127))
        return builder.bitcast(builder.shl(biased, ir.IntType(32)(23)), ir.FloatType())

    return types.float32(exponent), generate


power_of_two = intrinsic(_power_of_two)


def _exp(value: np.float32) -> np.float32:
    """exp(value) to the last digit or two; it vectorises, which the library's does not.

    Range reduction and polynomial are those of Cephes' expf (S. Moshier).
    """
    clipped = min(max(value, np.float32(-87.0)), np.float32(88.0))
    turns = np.floor(clipped * np.float32(1.44269504) + np.float32(0.5))
    rest = clipped - turns * np.float32(0.693359375) + turns * np.float32(2.12194440e-4)
    series = np.float32(1.9875691500e-4)
    series = series * rest + np.float32(1.3981999507e-3)
    series = series * rest + np.float32(8.3334519073e-3)
    series = series * rest + np.float32(4.1665795894e-2)
    series = series * rest + np.float32(1.6666665459e-1)
    series = series * rest + np.float32(5.0000001201e-1)
    series = series * rest * rest + rest + np.float32(1.0)
    result: np.float32 = series * power_of_two(np.int32(turns))
    return result


exp = njit(fastmath=FAST, inline="always")(_exp)
