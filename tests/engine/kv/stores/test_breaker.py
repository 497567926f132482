"""A node that has failed is left alone for a while."""

from __future__ import annotations

from services.engine.kv.stores.breaker import FAILURES, FIRST_REST_S, LONGEST_REST_S, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def opened_breaker(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        assert breaker.admits()
        breaker.failed()
    return breaker


def test_fewer_failures_than_it_takes_leave_it_closed() -> None:
    breaker = Breaker()
    for _ in range(5):
        for _ in range(FAILURES - 1):
            breaker.failed()
        assert breaker.admits()
        breaker.succeeded()


def test_a_node_that_fails_rests_and_is_tried_by_one() -> None:
    clock = Clock()
    breaker = opened_breaker(clock)
    assert breaker.is_open
    assert not breaker.admits()
    clock.now += FIRST_REST_S
    assert [breaker.admits() for _ in range(3)] == [True, False, False]


def test_a_success_ends_the_rest() -> None:
    clock = Clock()
    breaker = opened_breaker(clock)
    clock.now += FIRST_REST_S
    assert breaker.admits()
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.admits()


def test_each_rest_is_longer_up_to_the_longest() -> None:
    clock = Clock()
    breaker = opened_breaker(clock)
    rests = []
    for _ in range(8):
        began = clock.now
        while not breaker.admits():
            clock.now += 0.25
        breaker.failed()
        rests.append(clock.now - began)
    assert rests == [1, 2, 4, 8, 15, 15, 15, 15]
    assert rests[-1] == LONGEST_REST_S


def test_who_never_tells_how_it_went_blocks_nobody_for_ever() -> None:
    clock = Clock()
    breaker = opened_breaker(clock)
    clock.now += FIRST_REST_S
    assert breaker.admits()
    clock.now += 2 * FIRST_REST_S
    assert breaker.admits()
