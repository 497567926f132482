"""What is refused before it is read, and what is said of the time to come again."""

from __future__ import annotations

import pytest

from services.codec.pressure import Pressure
from services.codec.retry import LONGEST_S, retry_headers
from services.shared.errors import Overloaded
from services.shared.stream.load import Load, ReplicaState

FULL = Load(state=ReplicaState.READY, refusing=True, expected_wait_ms=4000)


def waits(load: Load | None, draw: float, concurrency: int = 0) -> float | None:
    refusal = Pressure(concurrency, lambda: load, lambda: draw).refusal()
    return None if refusal is None else refusal.retry_after_s


@pytest.mark.parametrize("load", [None, Load(state=ReplicaState.READY, expected_wait_ms=4000)])
def test_there_is_room_unless_the_other_side_says_that_it_refuses(load: Load | None) -> None:
    assert Pressure(1, lambda: load, lambda: 0).refusal() is None


def test_a_refusal_tells_the_expected_wait_and_up_to_half_of_it_more() -> None:
    assert waits(FULL, 0, concurrency=1) == 4
    assert waits(FULL, 1, concurrency=1) == 6


def test_where_no_wait_is_known_a_second_is_told() -> None:
    assert waits(None, 0) == 1
    assert waits(Load(state=ReplicaState.READY), 0.5) == 1.25


def test_our_own_places_are_counted_while_they_are_used() -> None:
    pressure = Pressure(2, lambda: None, lambda: 0)
    with pressure.place(), pressure.place():
        assert pressure.refusal() is not None
        with pytest.raises(Overloaded), pressure.place():
            pass
    assert pressure.refusal() is None


@pytest.mark.parametrize(
    ("wait_s", "told"),
    [
        (0.0004, {b"retry-after": b"1", b"retry-after-ms": b"1"}),
        (2.0, {b"retry-after": b"2", b"retry-after-ms": b"2000"}),
        (2.0001, {b"retry-after": b"3", b"retry-after-ms": b"2001"}),
        (1e9, {b"retry-after": b"120", b"retry-after-ms": b"120000"}),
        (None, {b"retry-after": b"1"}),
    ],
)
def test_headers_tell_whole_seconds_and_the_exact_time(
    wait_s: float | None, told: dict[bytes, bytes]
) -> None:
    assert LONGEST_S == 120
    for status in (429, 503, 529):
        assert dict(retry_headers(status, wait_s)) == told
    assert retry_headers(400, wait_s) == []
