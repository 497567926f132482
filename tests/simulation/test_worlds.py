"""Worlds in which nothing may break, whatever goes wrong in them."""

from __future__ import annotations

import pytest

from tests.simulation.world import run_world

FIXED = 50


@pytest.mark.parametrize("first", range(0, FIXED, 10))
def test_no_invariant_breaks(first: int) -> None:
    verdicts = [run_world(seed) for seed in range(first, first + 10)]
    broken = [f"seed {v.seed}: {v.violation}" for v in verdicts if v.violation is not None]
    assert not broken, "\n".join(broken)
