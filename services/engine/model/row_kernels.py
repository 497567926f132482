"""Compiled kernels that work on each row of a step alone: norm and activation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from services.engine.model.compiled import Kernel, compiled, exp


def norm_kernel(*, parallel: bool) -> Kernel:
    """Its arguments: residual [rows, n], what is added to it, weight [n], eps, out [rows, n]."""
    each = prange if parallel else range

    def kernel(residual: Any, delta: Any, weight: Any, eps: Any, out: Any) -> None:
        width = residual.shape[1]
        for row in each(len(residual)):
            total = np.float32(0.0)
            for i in range(width):
                value = residual[row, i] + delta[row, i]
                residual[row, i] = value
                total += value * value
            scale = np.float32(1.0) / np.sqrt(total / np.float32(width) + eps)
            for i in range(width):
                out[row, i] = residual[row, i] * scale * weight[i]

    return compiled(kernel, "(f4[:, ::1], f4[:, ::1], f4[::1], f4, f4[:, ::1])", parallel=parallel)


def silu_kernel(*, parallel: bool) -> Kernel:
    """Its arguments: gate_up [rows, 2 * n], out [rows, n]."""
    each = prange if parallel else range

    def kernel(gate_up: Any, out: Any) -> None:
        width = out.shape[1]
        for row in each(len(out)):
            gates, ups, target = gate_up[row, :width], gate_up[row, width:], out[row]
            for i in range(width):
                target[i] = gates[i] / (np.float32(1.0) + exp(-gates[i])) * ups[i]

    return compiled(kernel, "(f4[:, ::1], f4[:, ::1])", parallel=parallel)
