"""Counter-based random numbers: Gumbel noise as a hash of (seed, position, token ID).

The mixing steps are those of SplitMix64 (Steele, Lea, Flood, 2014). No state is kept, so a stream
that goes on elsewhere draws the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UInt64s = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def gumbel(seeds: UInt64s, positions: UInt64s, token_ids: UInt64s) -> NDArray[np.float64]:
    """Standard Gumbel noise, one value for each entry of the (broadcast) arguments."""
    with np.errstate(over="ignore"):
        stream = _mix(_mix(seeds + _GOLDEN) ^ (positions * _GOLDEN))
        bits = _mix(stream + (token_ids + np.uint64(1)) * _GOLDEN)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return -np.log(-np.log(uniform))


def _mix(values: UInt64s) -> UInt64s:
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
