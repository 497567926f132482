"""How fast the fleet takes what waits."""

from __future__ import annotations

import pytest

from services.router.admission.service_rate import TIME_CONSTANT_S, ServiceRate
from tests.router.manual_clock import ManualClock


def test_a_steady_rate_is_found() -> None:
    clock = ManualClock()
    rate = ServiceRate(clock)
    assert rate.per_s() is None
    rate.wait()
    for _ in range(100):
        clock.pass_time(0.5)
        rate.serve(20)
    assert rate.per_s() == pytest.approx(40, rel=0.05)


def test_a_new_rate_replaces_the_old_one() -> None:
    clock = ManualClock()
    rate = ServiceRate(clock)
    rate.wait()
    for tokens in [100] * 100 + [10] * 100:
        clock.pass_time(1)
        rate.serve(tokens)
    assert rate.per_s() == pytest.approx(10, rel=0.1)


def test_time_in_which_nothing_waits_does_not_count() -> None:
    clock = ManualClock()
    rate = ServiceRate(clock)
    rate.wait()
    clock.pass_time(1)
    rate.serve(30)
    rate.rest()
    clock.pass_time(1000)
    rate.serve(5000)
    assert rate.per_s() == pytest.approx(30, rel=0.05)


def test_a_standstill_shows_before_anything_goes() -> None:
    clock = ManualClock()
    rate = ServiceRate(clock)
    rate.wait()
    clock.pass_time(1)
    rate.serve(30)
    clock.pass_time(3 * TIME_CONSTANT_S)
    assert (rate.per_s() or 0) < 0.1
