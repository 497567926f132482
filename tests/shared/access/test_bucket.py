"""A bucket gives its rate, whatever is asked of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.shared.access.bucket import MINUTE_S, Bucket


class Time:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def test_a_minutes_worth_is_there_at_first_and_comes_back_in_a_minute() -> None:
    time = Time()
    bucket = Bucket(60, time)
    bucket.take(60)
    assert (bucket.remaining, bucket.wait_s(1), bucket.full_in_s) == (0, 1, MINUTE_S)
    time.s += 1.5
    assert bucket.remaining == 1
    assert bucket.wait_s(1) == 0
    time.s += 3600
    assert (bucket.remaining, bucket.full_in_s) == (60, 0)


def test_more_than_a_minutes_worth_waits_for_all_and_is_paid_afterwards() -> None:
    time = Time()
    bucket = Bucket(60, time)
    assert bucket.wait_s(600) == 0
    bucket.take(600)
    assert bucket.remaining == 0
    assert bucket.wait_s(1) == pytest.approx(541)


def test_what_is_given_back_is_there_and_no_more_than_fits() -> None:
    bucket = Bucket(60, Time())
    bucket.take(10)
    bucket.give_back(50)
    assert bucket.remaining == 60


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 100)), max_size=100))
def test_over_time_no_more_than_the_rate_is_given(asked: list[tuple[float, int]]) -> None:
    """Beyond one bucketful at the beginning, and one request that was larger than what was left."""
    time = Time()
    bucket = Bucket(60, time)
    taken = 0
    for seconds, amount in asked:
        time.s += seconds
        if not bucket.wait_s(amount):
            bucket.take(amount)
            taken += amount
    assert taken <= 60 + (time.s - 1000) + 100
