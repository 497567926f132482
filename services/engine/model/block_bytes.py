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
        copy = np.empty(self.block_bytes, np.uint8).data
        self.read_into(block, copy)
        return copy

    def read_into(self, block: int, buffer: memoryview) -> None:
        layers = self._cache[:, block]
        into = np.frombuffer(buffer, np.uint8).reshape(tuple(layers.shape))
        np.copyto(into, _array(layers if self._on_cpu else layers.cpu()))

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
