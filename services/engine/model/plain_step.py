"""A step in plain torch: the measure for the kernels, and the way without them."""

from __future__ import annotations

import torch
from torch.nn import functional

from services.engine.model.attention import attend_gathered
from services.engine.model.config import ModelConfig
from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Layout, Span
from services.engine.model.rope import rotate


class PlainSteps:
    """Begins plain steps of one model."""

    def __init__(self, config: ModelConfig, rope: torch.Tensor) -> None:
        self._config = config
        self._rope = rope

    def begin(self, residual: torch.Tensor, layout: Layout, pool: KvPool) -> PlainStep:
        step = PlainStep(self._config, residual, layout, pool)
        positions = torch.from_numpy(layout.positions()).to(residual.device)
        step.turns = self._rope[positions]
        step.slots = _slots(layout, pool.block_size).to(residual.device)
        return step


class PlainStep:
    turns: torch.Tensor
    slots: torch.Tensor

    def __init__(
        self, config: ModelConfig, residual: torch.Tensor, layout: Layout, pool: KvPool
    ) -> None:
        self._config = config
        self._residual = residual
        self._layout = layout
        self._pool = pool

    def norm(self, weight: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(self._residual, weight.shape, weight, self._config.rms_eps)

    def add_norm(self, delta: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        self._residual += delta
        return self.norm(weight)

    def attend(self, qkv: torch.Tensor, layer: int) -> torch.Tensor:
        config = self._config
        heads = qkv.view(len(qkv), -1, config.head_dim)
        queries, keys, values = heads.split((config.heads, config.kv_heads, config.kv_heads), dim=1)
        self._pool.write(layer, self.slots, (rotate(keys, self.turns), values))
        queries = rotate(queries * config.head_dim**-0.5, self.turns)
        return torch.cat(
            [
                attend_gathered(queries[span.row_slice], span, self._pool, layer)
                for span in self._layout.spans
            ]
        )

    def silu_up(self, gate_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_up.chunk(2, dim=1)
        return functional.silu(gate) * up


def _slots(layout: Layout, block_size: int) -> torch.Tensor:
    """Slot of each row: where its position lies in the pool."""

    def slots(span: Span) -> torch.Tensor:
        positions = torch.arange(span.start, span.end)
        return torch.as_tensor(span.block_ids)[positions // block_size] * block_size + (
            positions % block_size
        )

    return torch.cat([slots(span) for span in layout.spans])
