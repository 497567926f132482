"""Worlds in which nothing may break, whatever goes wrong in them."""

from __future__ import annotations

from collections import Counter
from secrets import randbelow

import pytest

from tests.simulation.coverage import never_seen
from tests.simulation.runs import Report, run_worlds

FIXED = 200
FRESH = 100

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return run_worlds(range(FIXED))


def broken(reports: list[Report]) -> str:
    return "\n".join(str(report) for report in reports if report.violation is not None)


def test_no_invariant_breaks_in_known_worlds(reports: list[Report]) -> None:
    assert not broken(reports), broken(reports)


def test_everything_that_can_go_wrong_did(reports: list[Report]) -> None:
    seen: Counter[str] = Counter()
    for report in reports:
        seen.update(report.seen)
    assert not never_seen(seen)


def test_no_invariant_breaks_in_worlds_that_nobody_has_seen() -> None:
    fresh = run_worlds(FIXED + randbelow(10**9) for _ in range(FRESH))
    assert not broken(fresh), broken(fresh)
