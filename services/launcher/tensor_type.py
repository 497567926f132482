"""How a GGUF stores the values of a tensor: element types and their blocks.

Numbers and layouts are those of ggml (`enum ggml_type`, `block_q4_1`, `block_q8_0`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorType:
    """Values are stored in blocks of `values` values in `size` bytes."""

    name: str
    values: int
    size: int


F32 = TensorType("F32", values=1, size=4)
F16 = TensorType("F16", values=1, size=2)
Q4_1 = TensorType("Q4_1", values=32, size=20)
Q8_0 = TensorType("Q8_0", values=32, size=34)

TENSOR_TYPES = {0: F32, 1: F16, 3: Q4_1, 8: Q8_0}

# Only for error messages: types that others write and an import does not read.
OTHER_TYPES = {
    2: "Q4_0",
    6: "Q5_0",
    7: "Q5_1",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    15: "Q8_K",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    30: "BF16",
}
