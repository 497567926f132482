"""Compiled kernels of a draw, each over the rows of a batch.

The race takes few logarithms: -ln(u) >= 1 - u, so a token whose 1 - u is not below the best arrival
times its own weight cannot win. Runs of tokens in which none can are passed over; nearly all are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from services.engine.model.compiled import FAST, Kernel, compiled, exp, inlined
from services.engine.noise import BITS, FIRST, GOLDEN, SECOND

RUN = 128
SPAN = np.int64(2**BITS)
SHIFT = np.uint64(64 - BITS)
# The kernels' exp is good down to here; what is less likely by this much, in nats, weighs nothing.
FAINTEST = np.float32(-80.0)


def _best(logits: Any) -> Any:
    """The first of the largest."""
    peak = logits[0]
    for token in range(len(logits)):
        peak = max(peak, logits[token])
    for begin in range(0, len(logits), RUN):
        end = min(begin + RUN, len(logits))
        found = 0
        for token in range(begin, end):
            found += logits[token] == peak
        if found:
            for token in range(begin, end):
                if logits[token] == peak:
                    return token
    return 0


def _late(key: Any, token: Any) -> Any:
    """(1 - u) * 2**BITS of a token, less one half."""
    mixed = key + (np.uint64(token) + np.uint64(1)) * GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    mixed = (mixed ^ (mixed >> np.uint64(31))) >> SHIFT
    return np.float64(SPAN - np.int64(mixed)) - 1.0


def _winner(weights: Any, key: Any, best: Any) -> Any:
    """The token that arrives first."""
    scale = 2.0**-BITS
    winner = best
    first = -np.log1p(-(late(key, winner) + 0.5) * scale) / weights[winner]
    for begin in range(0, len(weights), RUN):
        end = min(begin + RUN, len(weights))
        reach = first / scale
        chances = 0
        for token in range(begin, end):
            chances += weights[token] * reach > late(key, token)
        if chances == 0:
            continue
        for token in range(begin, end):
            if weights[token] * reach > late(key, token):
                arrival = -np.log1p(-(late(key, token) + 0.5) * scale) / weights[token]
                if arrival < first:
                    first, winner = arrival, token
    return winner


late = njit(fastmath=FAST, inline="always")(_late)
best_of = inlined(_best, fast=True)
winner_of = inlined(_winner, fast=True)


def best_kernel(*, parallel: bool) -> Kernel:
    """Its arguments: logits [n, vocabulary], out [n]."""
    each = prange if parallel else range

    def kernel(logits: Any, out: Any) -> None:
        for row in each(len(logits)):
            out[row] = best_of(logits[row])

    return compiled(kernel, "(f4[:, ::1], i8[::1])", parallel=parallel)


def weight_kernel(*, parallel: bool) -> Kernel:
    """Its arguments: logits [n, vocabulary], best [n], temperatures [n], out [n, vocabulary]."""
    each = prange if parallel else range

    def kernel(logits: Any, best: Any, temperatures: Any, out: Any) -> None:
        for row in each(len(logits)):
            line, target = logits[row], out[row]
            peak, cold = line[best[row]], np.float32(1.0) / temperatures[row]
            for token in range(len(line)):
                score = (line[token] - peak) * cold
                target[token] = exp(score) if score > FAINTEST else np.float32(0.0)

    return compiled(kernel, "(f4[:, ::1], i8[::1], f4[::1], f4[:, ::1])", parallel=parallel)


def race_kernel(*, parallel: bool) -> Kernel:
    """Its arguments: weights [n, vocabulary], keys [n], drawn [n], which holds the best."""
    each = prange if parallel else range

    def kernel(weights: Any, keys: Any, drawn: Any) -> None:
        for row in each(len(weights)):
            drawn[row] = winner_of(weights[row], keys[row], drawn[row])

    return compiled(kernel, "(f4[:, ::1], u8[::1], i8[::1])", parallel=parallel)
