"""Ratios as lines, the summary of a run, and the load tool's report."""

from __future__ import annotations

from typing import Any

import pytest

from bench.__main__ import verdict
from bench.load_tool import Shape, rate_of
from bench.ratio import Ratio, ratios

SHAPE = Shape(streams=8, output_tokens=128)


@pytest.mark.parametrize(
    "ratio",
    [
        Ratio(name="http_1", value=4.25, aim=">= 4"),
        Ratio(name="scheduling_1", value=5.11e-05),
        Ratio(name="sessions", value=12000.0),
    ],
)
def test_a_ratio_is_read_back_from_its_line(ratio: Ratio) -> None:
    assert list(ratios(f"other words\n{ratio}\nratio of nothing\n")) == [ratio]


def test_a_verdict_is_all_ratios_in_their_order() -> None:
    assert verdict("ratio a 1\nratio of nothing\nratio b 2 (aim 3)\n\n") == [
        "ratio a 1",
        "ratio b 2 (aim 3)",
    ]


def test_without_ratios_the_last_line_is_the_verdict() -> None:
    assert verdict("one\ntwo\n\n") == ["two"]


def _report(tokens: int) -> dict[str, Any]:
    metrics = {
        "output_token_count": {"successful": {"total_sum": float(tokens)}},
        "output_tokens_per_second": {"successful": {"mean": 70.5}},
    }
    return {"benchmarks": [{"metrics": metrics}]}


def test_a_rate_needs_every_token() -> None:
    assert rate_of(_report(1024), SHAPE) == 70.5
    with pytest.raises(RuntimeError, match="expected 1024 output tokens, got 1023"):
        rate_of(_report(1023), SHAPE)
