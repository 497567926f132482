"""The stored bytes of a tensor as fp16 values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf import Tensor
from services.launcher.tensor_type import F16, F32, Q4_1, Q8_0, TensorType

BLOCKS_AT_ONCE = 1 << 16  # bounds the fp32 copy that lives beside the result

Half = NDArray[np.float16]

_Q4_1 = np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("pairs", "u1", (16,))])
_Q8_0 = np.dtype([("scale", "<f2"), ("values", "i1", (32,))])
_DTYPES: dict[TensorType, np.dtype[Any]] = {
    F32: np.dtype("<f4"),
    F16: np.dtype("<f2"),
    Q4_1: _Q4_1,
    Q8_0: _Q8_0,
}


def dequantize(tensor: Tensor, data: bytes) -> Half:
    """Values in the tensor's shape; computed in fp32, rounded once.

    Raises:
        BadModelFile: a value is not finite or beyond fp16 (65,504).
    """
    blocks: NDArray[Any] = np.frombuffer(data, _DTYPES[tensor.type])
    out = np.empty((len(blocks), tensor.type.values), np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(blocks), BLOCKS_AT_ONCE):
            some = slice(start, start + BLOCKS_AT_ONCE)
            out[some] = _values(tensor.type, blocks[some])
            if not np.isfinite(out[some]).all():
                raise BadModelFile(
                    f"values of tensor {tensor.name!r} must be finite and at most 65504 (fp16)"
                )
    return out.reshape(tensor.shape)


def _values(type_: TensorType, blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Blocks as rows of fp32 values."""
    if type_ is Q4_1:
        return _q4_1(blocks)
    if type_ is Q8_0:
        scale: NDArray[np.float32] = blocks["scale"].astype(np.float32)
        return scale[:, None] * blocks["values"].astype(np.float32)
    return blocks.astype(np.float32)[:, None]


def _q4_1(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Value i of a block is in the low half of byte i, value 16 + i in the high half."""
    pairs: NDArray[np.uint8] = blocks["pairs"]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32)
    scale: NDArray[np.float32] = blocks["scale"].astype(np.float32)
    minimum: NDArray[np.float32] = blocks["minimum"].astype(np.float32)
    return scale[:, None] * numbers + minimum[:, None]
