"""A step on the compiled kernels, for models in fp32 on a CPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from services.engine.model.attention_kernel import (
    LANES,
    TILE_ROWS,
    attention_kernel,
    attention_scratch,
)
from services.engine.model.compiled import Kernel
from services.engine.model.config import ModelConfig
from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Layout
from services.engine.model.row_kernels import norm_kernel, silu_kernel

# From here on a second thread saves more than it costs to wake.
PARALLEL_ROWS = 32
PARALLEL_POSITIONS = 512


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of one model, all serial or all parallel."""

    attention: Kernel
    norm: Kernel
    silu: Kernel

    @classmethod
    def compile(cls, config: ModelConfig, *, parallel: bool) -> Kernels:
        return cls(
            attention_kernel(config.group, config.head_dim, parallel=parallel),
            norm_kernel(parallel=parallel),
            silu_kernel(parallel=parallel),
        )


def serves(config: ModelConfig) -> bool:
    """Whether the kernels can compute this shape: a head is a number of whole vectors."""
    return config.head_dim % LANES == 0


class KernelSteps:
    """Begins steps of one model, on up to `workers` threads, for pools of blocks of LANES."""

    block_size = LANES

    def __init__(self, config: ModelConfig, rope: torch.Tensor, *, workers: int) -> None:
        self.config = config
        self.rope = rope.numpy()
        self.serial = Kernels.compile(config, parallel=False)
        self.parallel = Kernels.compile(config, parallel=True) if workers > 1 else self.serial
        self.scratch = attention_scratch(
            workers, config.group, config.head_dim, config.context_length
        )

    def begin(self, residual: torch.Tensor, layout: Layout, pool: KvPool) -> KernelStep:
        return KernelStep(self, residual, layout, pool)


class KernelStep:
    """See `Step`. The arrays of what it returns are made once and filled in each layer."""

    def __init__(
        self, steps: KernelSteps, residual: torch.Tensor, layout: Layout, pool: KvPool
    ) -> None:
        config, rows = steps.config, len(residual)
        self._steps = steps
        self._residual = residual
        self._residual_array = residual.numpy()
        self._caches = pool.arrays()
        self._places, self._tables = layout.places()
        self._tiles = layout.tiles(TILE_ROWS)
        wide = _choice(
            steps, sum(span.rows * span.end for span in layout.spans), PARALLEL_POSITIONS
        )
        self._attention = wide.attention
        self._scratch = steps.scratch if wide is steps.parallel else steps.scratch[:1]
        kernels = _choice(steps, rows, PARALLEL_ROWS)
        self._norm, self._silu = kernels.norm, kernels.silu
        self._normed = _Rows(rows, config.hidden_size)
        self._attended = _Rows(rows, config.query_size)
        self._activated = _Rows(rows, config.intermediate_size)

    def norm(self, weight: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(self._residual, weight.shape, weight, self._steps.config.rms_eps)

    def add_norm(self, delta: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        self._norm(
            self._residual_array,
            delta.numpy(),
            weight.numpy(),
            self._steps.config.rms_eps,
            self._normed.array,
        )
        return self._normed.tensor

    def attend(self, qkv: torch.Tensor, layer: int) -> torch.Tensor:
        self._attention(
            qkv.numpy(),
            self._places,
            self._tiles,
            self._tables,
            self._steps.rope,
            self._caches[layer],
            self._scratch,
            self._attended.array,
        )
        return self._attended.tensor

    def silu_up(self, gate_up: torch.Tensor) -> torch.Tensor:
        self._silu(gate_up.numpy(), self._activated.array)
        return self._activated.tensor


def _choice(steps: KernelSteps, work: int, enough: int) -> Kernels:
    return steps.parallel if work >= enough else steps.serial


class _Rows:
    """The same fp32 memory for torch and for the kernels."""

    def __init__(self, rows: int, width: int) -> None:
        self.tensor = torch.empty(rows, width)
        self.array: NDArray[np.float32] = self.tensor.numpy()
