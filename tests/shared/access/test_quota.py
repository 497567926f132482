"""What is reserved is settled or refunded, in all orders and for all ends."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.shared.access.quota import Quota, Reservation, Share
from services.shared.access.tenant_limits import TenantLimits
from services.shared.errors import RateLimited
from tests.shared.access.test_bucket import Time

LIMITS = TenantLimits(
    tenant="acme", requests_per_minute=60, tokens_per_minute=6000, max_concurrency=2
)


def quota(**limits: int | None) -> tuple[Quota, Time]:
    time = Time()
    return Quota(replace(LIMITS, **limits), time), time  # type: ignore[arg-type]  # limits are ints


def remaining(quota: Quota) -> int:
    share = quota.tokens
    assert share is not None
    return share.remaining


def test_requests_are_counted_and_told_when_to_come_again() -> None:
    mine, time = quota(requests_per_minute=2)
    mine.enter()
    mine.enter()
    with pytest.raises(RateLimited, match="limit of 2 requests per minute is reached") as caught:
        mine.enter()
    assert caught.value.retry_after_s == pytest.approx(30)
    assert mine.requests == Share(2, 0, 60)
    time.s += 30
    mine.enter()


def test_what_was_not_used_is_given_back() -> None:
    mine, _ = quota()
    with mine.reserve(1000, 1) as reservation:
        assert remaining(mine) == 5000
        reservation.used = 300
    assert remaining(mine) == 5700
    assert (mine.totals.reserved, mine.totals.settled, mine.totals.refunded) == (1000, 300, 700)


def test_what_came_to_more_is_paid_too() -> None:
    mine, _ = quota()
    with mine.reserve(1000, 1) as reservation:
        reservation.used = 7000
    assert remaining(mine) == 0
    assert (mine.totals.reserved, mine.totals.settled, mine.totals.refunded) == (7000, 7000, 0)
    with pytest.raises(RateLimited, match="6000 tokens per minute") as caught, mine.reserve(1, 1):
        pass
    assert caught.value.retry_after_s == pytest.approx(10.01)


def test_a_request_that_fails_settles_what_it_used_until_then() -> None:
    mine, _ = quota()
    reservations: list[Reservation] = []

    def fail() -> None:
        with mine.reserve(1000, 1) as reservation:
            reservation.used = 10
            reservations.append(reservation)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert reservations
    assert mine.running == 0
    assert (mine.totals.settled, mine.totals.refunded) == (10, 990)


def test_places_are_taken_by_generations_and_left_at_their_ends() -> None:
    mine, _ = quota()
    with mine.reserve(1, 1), mine.reserve(1, 1):
        assert mine.refusal() is not None
        with (
            pytest.raises(RateLimited, match="limit of 2 generations at a time"),
            mine.reserve(1, 1),
        ):
            pass
    assert mine.refusal() is None
    with mine.reserve(1, 8):
        assert mine.running == 8


def test_a_refusal_takes_nothing() -> None:
    mine, _ = quota()
    with mine.reserve(1, 2):
        before = remaining(mine)
        with pytest.raises(RateLimited), mine.reserve(1000, 1):
            pass
        assert remaining(mine) == before
        assert mine.totals.reserved == 1


def test_nothing_is_limited_or_told_without_limits() -> None:
    mine = Quota(TenantLimits(tenant="acme"), Time())
    for _ in range(1000):
        mine.enter()
    with mine.reserve(10**9, 100):
        assert mine.refusal() is None
    assert mine.requests is mine.tokens is None


def test_other_limits_are_neither_a_present_nor_a_loss() -> None:
    mine, _ = quota()
    with mine.reserve(3000, 1) as reservation:
        reservation.used = 3000
    mine.change(replace(LIMITS, tokens_per_minute=60_000))
    assert remaining(mine) == 30_000
    mine.change(replace(LIMITS, tokens_per_minute=None))
    assert mine.tokens is None
    mine.change(LIMITS)
    assert remaining(mine) == 6000


@given(
    st.lists(
        st.tuples(st.integers(1, 3000), st.integers(0, 5000), st.integers(1, 3), st.booleans()),
        max_size=60,
    )
)
def test_reserved_is_settled_and_refunded(
    requests: list[tuple[int, int, int, bool]],
) -> None:
    mine, time = quota(max_concurrency=5)
    running: list[tuple[ExitStack, Reservation, int]] = []
    for tokens, used, generations, ends_one in requests:
        time.s += 10
        stack = ExitStack()
        try:
            reservation = stack.enter_context(mine.reserve(tokens, generations))
        except RateLimited:
            continue
        running.append((stack, reservation, used))
        if ends_one:
            first, its, its_used = running.pop(0)
            its.used = its_used
            first.close()
    held = sum(reservation.tokens for _, reservation, _ in running)
    totals = mine.totals
    assert totals.reserved == totals.settled + totals.refunded + held
    for stack, reservation, used in running:
        reservation.used = used
        stack.close()
    assert totals.reserved == totals.settled + totals.refunded
    assert mine.running == 0
    time.s += 3600
    assert mine.is_at_rest
