"""Multiplication by a weight matrix, by the fastest way that the device has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch.nn import functional

_PROBED_ROWS = 132
"""More than FBGEMM computes at a time, so that each of its tiles occurs."""

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
    multiply = _multiplication(weight)
    tile = rows_of_a_tile()
    if tile == 1:
        return multiply

    def apply(rows: torch.Tensor) -> torch.Tensor:
        count = len(rows)
        if not count % tile:
            return multiply(rows)
        fill = rows[:1].expand(-count % tile, -1)
        return multiply(torch.cat((rows, fill)))[:count]

    return apply


def _multiplication(weight: torch.Tensor) -> Linear:
    packed = torch.ops.quantized.linear_prepack_fp16(weight.float(), None)
    multiply = torch.ops.quantized.linear_dynamic_fp16.default

    def apply(rows: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = multiply(rows, packed)
        return product

    return apply


@cache
def rows_of_a_tile() -> int:
    """In multiples of so many rows no product depends on the rows beside it, by a single bit.

    FBGEMM computes rows in tiles of what fits its registers. With AVX-512 tiles of all heights add
    up in one order, with AVX2 they do not: a tile of one or two rows ends in other last bits.
    Where no such number is found it is 1.
    """
    generator = torch.Generator().manual_seed(1)
    multiply = _multiplication(torch.randn(64, 64, generator=generator))
    rows = torch.randn(_PROBED_ROWS, 64, generator=generator)
    return next((tile for tile in (1, 2, 3, 4, 6) if _is_even(multiply, rows, tile)), 1)


def _is_even(multiply: Linear, rows: torch.Tensor, tile: int) -> bool:
    alone = torch.cat([multiply(row.expand(tile, -1).contiguous())[:1] for row in rows[:, None]])
    return all(
        torch.equal(multiply(rows[:count].contiguous()), alone[:count])
        for count in range(tile, len(rows) + 1, tile)
    )


def _plain(weight: torch.Tensor) -> Linear:
    return lambda rows: functional.linear(rows, weight)
