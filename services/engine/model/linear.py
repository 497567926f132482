"""Multiplication by a weight matrix, by the fastest way that the device has."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

Linear = Callable[[torch.Tensor], torch.Tensor]
"""Maps rows [n, in] to rows [n, out]."""


def has_packed_fp16() -> bool:
    """Whether FBGEMM's product of fp32 rows with fp16 weights, in fp32 maths, is there."""
    return "fbgemm" in torch.backends.quantized.supported_engines and hasattr(
        torch.ops.quantized, "linear_dynamic_fp16"
    )


def linear(weight: torch.Tensor, device: torch.device) -> Linear:
    """The product with `weight` [out, in].

    On a CPU with FBGEMM the weights are kept once, packed as fp16, which halves what each step
    reads; elsewhere as they come, in fp32 on a CPU.
    """
    if device.type == "cpu" and has_packed_fp16():
        return _packed_fp16(weight)
    return _plain(weight.float() if device.type == "cpu" else weight.to(device))


def _packed_fp16(weight: torch.Tensor) -> Linear:
    packed = torch.ops.quantized.linear_prepack_fp16(weight.float(), None)
    multiply = torch.ops.quantized.linear_dynamic_fp16.default

    def apply(rows: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = multiply(rows, packed)
        return product

    return apply


def _plain(weight: torch.Tensor) -> Linear:
    return lambda rows: functional.linear(rows, weight)
