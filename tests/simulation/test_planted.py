"""Bugs that were put into the real code are found: the simulation tests what it says."""

from __future__ import annotations

import pytest

from tests.simulation.planted import PLANTED, Planted
from tests.simulation.shrink import shrink
from tests.simulation.worlds import run_world

WORLDS = 200

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Planted) -> None:
    with bug.planted():
        violations = (run_world(seed).violation for seed in range(WORLDS))
        assert any(violation is not None for violation in violations)


def test_a_broken_world_is_made_small() -> None:
    bug = next(bug for bug in PLANTED if "too early" in bug.name)
    with bug.planted():
        seed = next(seed for seed in range(WORLDS) if run_world(seed).violation is not None)
        whole = run_world(seed)
        verdict, without = shrink(seed)
    assert verdict.violation is not None
    assert len(verdict.faults) <= 2 < len(whole.faults)
    assert {*verdict.faults, *without} == set(whole.faults)
