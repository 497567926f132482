"""The memory for keys and values, in blocks of a fixed number of positions."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from services.engine.model.config import ModelConfig


class KvPool:
    """Keys and values of all layers in one tensor.

    `cache` is [layers, blocks, kv_heads, 2, head_dim * block_size]. Of the two, keys are
    [head_dim, block_size], so that scores of a block's positions come out side by side, and values
    [block_size, head_dim]. What one layer keeps of a block is contiguous.
    """

    def __init__(
        self, config: ModelConfig, blocks: int, block_size: int, like: torch.Tensor
    ) -> None:
        self.block_size = block_size
        self.blocks = blocks
        self.cache = _zeros(
            (config.layers, blocks, config.kv_heads, 2, config.head_dim * block_size), like
        )
        # Views once, not per step and layer.
        keys, values = self.cache.unbind(dim=3)
        shape = (config.layers, blocks, config.kv_heads)
        self._keys = keys.view(*shape, config.head_dim, block_size).unbind()
        self._values = values.view(*shape, block_size, config.head_dim).unbind()

    def arrays(self) -> list[NDArray[np.float32]]:
        """Each layer's part of `cache`, sharing its memory; on a CPU."""
        return [layer.numpy() for layer in self.cache.unbind()]

    def write(self, layer: int, slots: torch.Tensor, heads: tuple[torch.Tensor, ...]) -> None:
        """Stores keys and values, each [rows, kv_heads, head_dim], at `slots` [rows].

        A slot is `block_id * block_size + offset`.
        """
        block, offset = slots // self.block_size, slots % self.block_size
        keys, values = heads
        self._keys[layer][block, :, :, offset] = keys
        self._values[layer][block, :, offset] = values

    def gather(self, layer: int, block_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the blocks in order, each [kv_heads, positions, head_dim]."""
        keys = self._keys[layer][block_ids].permute(1, 0, 3, 2).flatten(1, 2)
        values = self._values[layer][block_ids].transpose(0, 1).flatten(1, 2)
        return keys, values


def _zeros(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """Zeros of the type and on the device of `like`."""
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    # numpy asks the kernel for huge pages, torch does not: attention reads a tenth faster.
    return torch.from_numpy(np.zeros(shape, like.numpy().dtype))


def kv_bytes_per_block(config: ModelConfig, block_size: int, dtype: torch.dtype) -> int:
    return 2 * config.layers * config.kv_size * block_size * dtype.itemsize
