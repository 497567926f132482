"""Counter-based random numbers: a hash of (seed, position, token ID).

The mixing steps are those of SplitMix64 (Steele, Lea, Flood, 2014). No state is kept, so a stream
that goes on elsewhere draws the same numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UInt64s = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

# A hash gives this many bits, so that every number has an exact place inside (0, 1).
BITS = 52


def stream_keys(seeds: UInt64s, positions: UInt64s) -> UInt64s:
    """What a draw hashes token IDs with, one key for each seed and position."""
    with np.errstate(over="ignore"):
        return _mix(_mix(seeds + GOLDEN) ^ (positions * GOLDEN))


def uniform(keys: UInt64s, token_ids: UInt64s) -> NDArray[np.float64]:
    """Numbers inside (0, 1), one for each entry of the (broadcast) arguments."""
    with np.errstate(over="ignore"):
        bits = _mix(keys + (token_ids + np.uint64(1)) * GOLDEN) >> np.uint64(64 - BITS)
    return (bits.astype(np.float64) + 0.5) * 2.0**-BITS


def _mix(values: UInt64s) -> UInt64s:
    values = (values ^ (values >> np.uint64(30))) * FIRST
    values = (values ^ (values >> np.uint64(27))) * SECOND
    return values ^ (values >> np.uint64(31))
