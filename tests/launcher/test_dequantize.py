from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.bad_model_file import BadModelFile
from services.launcher.dequantize import BLOCKS_AT_ONCE, dequantize
from services.launcher.gguf import Tensor
from services.launcher.tensor_type import F16, F32, Q4_1, Q8_0, TensorType


def tensor(type_: TensorType, *shape: int) -> Tensor:
    return Tensor(name="t", shape=shape, type=type_, start=0, size=0)


def half(value: float) -> float:
    """A number rounded to fp16 by the struct module."""
    rounded: float = struct.unpack("<e", struct.pack("<e", value))[0]
    return rounded


HALVES = st.floats(-200, 200, width=16)
NIBBLES = st.lists(st.integers(0, 15), min_size=32, max_size=32)


@given(st.lists(st.tuples(HALVES, HALVES, NIBBLES), min_size=1, max_size=4))
def test_q4_1_is_scale_times_nibble_plus_minimum(
    blocks: list[tuple[float, float, list[int]]],
) -> None:
    data = b"".join(
        struct.pack("<ee", scale, minimum)
        + bytes(numbers[i] | numbers[i + 16] << 4 for i in range(16))
        for scale, minimum, numbers in blocks
    )
    expected = [
        [half(float(np.float32(scale) * number + np.float32(minimum))) for number in numbers]
        for scale, minimum, numbers in blocks
    ]
    assert dequantize(tensor(Q4_1, len(blocks), 32), data).tolist() == expected


BYTES = st.lists(st.integers(-128, 127), min_size=32, max_size=32)


@given(st.lists(st.tuples(HALVES, BYTES), min_size=1, max_size=4))
def test_q8_0_is_scale_times_byte(blocks: list[tuple[float, list[int]]]) -> None:
    data = b"".join(struct.pack("<e32b", scale, *numbers) for scale, numbers in blocks)
    expected = [[half(scale * number) for number in numbers] for scale, numbers in blocks]
    assert dequantize(tensor(Q8_0, len(blocks), 32), data).tolist() == expected


@given(st.lists(st.floats(-65504, 65504, width=32), min_size=1))
def test_f32_is_rounded_once(values: list[float]) -> None:
    data = struct.pack(f"<{len(values)}f", *values)
    assert dequantize(tensor(F32, len(values)), data).tolist() == [half(v) for v in values]


@given(st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1))
def test_f16_is_kept(values: list[float]) -> None:
    data = struct.pack(f"<{len(values)}e", *values)
    assert dequantize(tensor(F16, len(values)), data).tobytes() == data


def test_tensor_of_many_chunks_keeps_its_order() -> None:
    values = (np.arange(2 * BLOCKS_AT_ONCE + 3) % 2048).astype(np.float32)
    assert (dequantize(tensor(F32, len(values)), values.tobytes()) == values).all()


@pytest.mark.parametrize("value", [65520.0, -1e30, float("inf"), float("nan")])
def test_value_beyond_fp16_is_refused_with_the_name(value: float) -> None:
    with pytest.raises(BadModelFile, match="tensor 't' must be finite and at most 65504"):
        dequantize(tensor(F32, 2), struct.pack("<2f", 1.0, value))


def test_product_beyond_fp16_is_refused() -> None:
    with pytest.raises(BadModelFile, match="at most 65504"):
        dequantize(tensor(Q8_0, 32), struct.pack("<e32b", 60000.0, *[100] * 32))
