"""The arithmetic of a draw on compiled kernels."""

from __future__ import annotations

import numpy as np
import torch

from services.engine.draw_kernels import best_kernel, race_kernel, weight_kernel
from services.engine.drawing import Floats, TokenIds
from services.engine.model.compiled import Kernel
from services.engine.noise import UInt64s

# From here on a second thread saves more than it costs to wake.
PARALLEL_ROWS = 8


class CompiledDrawing:
    """See `Drawing`; logits must be on a CPU.

    Args:
        workers: threads.
    """

    def __init__(self, workers: int) -> None:
        self._serial = _kernels(parallel=False)
        self._parallel = _kernels(parallel=True) if workers > 1 else self._serial

    def best(self, logits: torch.Tensor) -> TokenIds:
        best = np.empty(len(logits), dtype=np.int64)
        self._kernel(0, len(logits))(logits.numpy(), best)
        return best

    def weights(self, logits: torch.Tensor, best: TokenIds, temperatures: Floats) -> Floats:
        weights = np.empty(logits.shape, dtype=np.float32)
        self._kernel(1, len(logits))(logits.numpy(), best, temperatures, weights)
        return weights

    def race(self, weights: Floats, keys: UInt64s, best: TokenIds) -> TokenIds:
        drawn = best.copy()
        self._kernel(2, len(weights))(weights, keys, drawn)
        return drawn

    def _kernel(self, number: int, rows: int) -> Kernel:
        return (self._parallel if rows >= PARALLEL_ROWS else self._serial)[number]


def _kernels(*, parallel: bool) -> tuple[Kernel, Kernel, Kernel]:
    return (
        best_kernel(parallel=parallel),
        weight_kernel(parallel=parallel),
        race_kernel(parallel=parallel),
    )
