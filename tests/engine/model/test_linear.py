"""Both ways to multiply by fp16 weights give fp32 products, whatever rows are beside."""

from __future__ import annotations

import pytest
import torch

from services.engine.model import linear as linear_module
from services.engine.model.linear import has_packed_fp16, linear

CPU = torch.device("cpu")


def rows_and_weight() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    rows = torch.randn(260, 576, generator=generator)
    return rows, torch.randn(960, 576, generator=generator).half()


@pytest.mark.parametrize("packed", [True, False])
def test_products_are_those_of_fp32_maths(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if packed and not has_packed_fp16():
        pytest.skip("this torch has no FBGEMM")
    monkeypatch.setattr(linear_module, "has_packed_fp16", lambda: packed)
    rows, weight = rows_and_weight()
    product = linear(weight, CPU)(rows)
    torch.testing.assert_close(product, rows @ weight.float().T, atol=2e-4, rtol=1e-4)


@pytest.mark.skipif(not has_packed_fp16(), reason="this torch has no FBGEMM")
def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    rows, weight = rows_and_weight()
    multiply = linear(weight, CPU)
    whole = multiply(rows)
    for count in (1, 2, 3, 7, 8, 13, 32, 33, 120, 121, 122, 129, 241):
        assert torch.equal(multiply(rows[:count].contiguous()), whole[:count])
