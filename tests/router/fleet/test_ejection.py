"""Strikes, ejections, their lengths, and the way back."""

from __future__ import annotations

import pytest

from services.router.fleet.ejection import Cause, Ejection


def ejection() -> Ejection:
    return Ejection(threshold=3, first_s=5, longest_s=60)


def eject(one: Ejection, now: float) -> float:
    """Ejects and tells for how long."""
    for _ in range(3):
        one.strike(Cause.FAILURE, now)
    assert one.until is not None
    return one.until - now


@pytest.mark.parametrize("cause", Cause)
def test_strikes_of_one_kind_in_a_row_eject(cause: Cause) -> None:
    one = ejection()
    one.strike(cause, 0)
    one.strike(cause, 1)
    before = one.until
    one.strike(cause, 2)
    assert (before, one.until, one.cause) == (None, 7, cause)


@pytest.mark.parametrize("cause", Cause)
def test_a_success_of_the_same_kind_breaks_the_row(cause: Cause) -> None:
    one = ejection()
    one.strike(cause, 0)
    one.strike(cause, 0)
    one.wipe(cause)
    one.strike(cause, 0)
    one.strike(cause, 0)
    assert one.until is None


def test_strikes_of_different_kinds_are_no_row() -> None:
    one = ejection()
    for cause in Cause:
        one.strike(cause, 0)
    assert one.until is None


def test_each_ejection_is_twice_as_long_as_the_one_before_up_to_the_longest() -> None:
    one = ejection()
    lengths = []
    now = 0.0
    for _ in range(6):
        lengths.append(eject(one, now))
        now += lengths[-1]
        one.restore(now)
        assert one.until is None
    assert lengths == [5, 10, 20, 40, 60, 60]


def test_a_failed_probe_ejects_for_longer_at_once() -> None:
    one = ejection()
    eject(one, 0)
    assert not one.half_open(4.9)
    assert one.half_open(5)
    one.strike(Cause.PROBE, 6)
    assert one.until == 16
    assert not one.half_open(15)


def test_what_still_runs_there_does_not_lengthen_an_ejection() -> None:
    one = ejection()
    eject(one, 0)
    for _ in range(9):
        one.strike(Cause.FAILURE, 6)
    assert one.until == 5


def test_a_probe_that_was_sent_before_the_ejection_decides_nothing() -> None:
    one = ejection()
    eject(one, 0)
    one.restore(1)
    one.strike(Cause.PROBE, 1)
    assert one.until == 5


def test_a_good_time_as_long_as_the_longest_ejection_begins_anew() -> None:
    one = ejection()
    eject(one, 0)
    one.restore(5)
    assert eject(one, 64) == 10
    one.restore(74)
    assert eject(one, 134) == 5


def test_one_that_is_spared_is_not_ejected_and_its_next_ejection_is_no_longer() -> None:
    one = ejection()
    eject(one, 0)
    one.spare()
    assert (one.until, one.spared) == (None, True)
    assert eject(one, 1) == 5
    assert not one.spared
