"""Whole blocks of a KV pool as bytes, for what moves them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from services.engine.model.kv_pool import KvPool


class BlockBytes:
    """Copies blocks out of a pool and into it. For any thread: a copy starts no OpenMP team.

    A block's bytes are those of all its layers, one after the other, as `KvPool.cache` has them.
    """

    def __init__(self, pool: KvPool) -> None:
        self._cache = pool.cache.view(torch.uint8).flatten(2)  # [layers, blocks, bytes]
        self._on_cpu = pool.cache.device.type == "cpu"
        self.block_bytes = self._cache.shape[0] * self._cache.shape[2]

    def read(self, block: int) -> memoryview:
        layers = self._cache[:, block]
        if not self._on_cpu:
            return layers.cpu().numpy().reshape(-1).data
        copy = np.empty(tuple(layers.shape), np.uint8)
        np.copyto(copy, _array(layers))
        return copy.reshape(-1).data

    def write(self, block: int, payload: bytes | bytearray | memoryview) -> None:
        layers = self._cache[:, block]
        given = np.frombuffer(payload, np.uint8).reshape(tuple(layers.shape))
        if self._on_cpu:
            np.copyto(_array(layers), given)
        else:
            layers.copy_(torch.from_numpy(given.copy()))


def _array(layers: torch.Tensor) -> NDArray[np.uint8]:
    """The same memory, as numpy's, whose copies hold no lock of the interpreter."""
    array: NDArray[np.uint8] = layers.numpy()
    return array
