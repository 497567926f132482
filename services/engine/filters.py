"""Top-k, min-p and top-p: which weights of a row stay in the draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from services.shared.stream.generation import Sampling

# Most nuclei are smaller; a larger one costs a sort of the whole row.
HEAD = 1024

Row = NDArray[np.float32]


def filters(sampling: Sampling) -> bool:
    """Whether anything would be filtered."""
    return not (sampling.top_k is sampling.top_p is sampling.min_p is None)


def keep(weights: Row, sampling: Sampling) -> None:
    """Sets to zero what is not among the k heaviest, below min_p, or outside the nucleus.

    Tokens as heavy as the last that stays, stay.

    Args:
        weights: [vocabulary], the heaviest 1.
        sampling: top-k and min-p apply first, top-p to what they leave.
    """
    cut = sampling.min_p or 0.0
    if sampling.top_k is not None and sampling.top_k < len(weights):
        cut = max(cut, float(_heaviest(weights, sampling.top_k)[-1]))
    if sampling.top_p is not None and sampling.top_p < 1:
        cut = max(cut, _nucleus_cut(weights[weights >= cut], sampling.top_p))
    weights[weights < cut] = 0.0


def _nucleus_cut(weights: Row, top_p: float) -> float:
    """The smallest weight of the nucleus (Holtzman et al. 2020)."""
    wanted = top_p * weights.sum(dtype=np.float64)
    for size in (HEAD, len(weights)):
        head = _heaviest(weights, size)
        last = int(np.searchsorted(np.cumsum(head, dtype=np.float64), wanted))
        if last < len(head):
            return float(head[last])
    return float(head[-1])


def _heaviest(weights: Row, size: int) -> Row:
    """The `size` largest in falling order, or all."""
    if size < len(weights):
        weights = np.partition(weights, len(weights) - size)[len(weights) - size :]
    ordered: Row = np.sort(weights)[::-1]
    return ordered
