"""Callers who come too early: remembered within bounds, counted, told in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from services.codec.repeats import PERIOD_S, Repeats, caller_of
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.shown import Shown
from services.shared.errors import Overloaded, Unavailable

BUSY = Overloaded("busy", retry_after_s=2)


class ManualClock:
    """Time stands until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None], /) -> None:
        self.due.append((self.now + delay, callback))

    def move(self, seconds: float) -> None:
        self.now += seconds
        ripe = [callback for when, callback in self.due if when <= self.now]
        self.due = [(when, callback) for when, callback in self.due if when > self.now]
        for callback in ripe:
            callback()


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["fields"] for record in caplog.records]


def test_a_caller_is_early_until_the_time_it_was_told() -> None:
    clock = ManualClock()
    repeats = Repeats(clock)
    assert repeats.early(b"a", Overloaded) is None
    repeats.tell(b"a", BUSY, "req-1")
    clock.move(0.5)
    early = repeats.early(b"a", Overloaded)
    assert early is not None
    assert (early.error, early.request_id, repeats.left_s(early)) == (BUSY, "req-1", 1.5)
    assert repeats.early(b"b", Overloaded) is None
    clock.move(1.5)
    assert repeats.early(b"a", Overloaded) is None


def test_who_was_told_no_time_is_early_for_a_second() -> None:
    clock = ManualClock()
    repeats = Repeats(clock)
    repeats.tell(b"a", Unavailable("none"), "req-1")
    clock.move(0.9)
    assert repeats.early(b"a", Unavailable) is not None
    assert repeats.early(b"a", Overloaded) is None
    clock.move(0.2)
    assert repeats.early(b"a", Unavailable) is None


def test_one_line_for_each_caller_and_period_tells_how_many(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    repeats = Repeats(clock)
    for caller, name in ((b"a", "req-a"), (b"b", "req-b")):
        repeats.tell(caller, Overloaded("busy", retry_after_s=100), name)
    for _ in range(1000):
        repeats.early(b"a", Overloaded)
    repeats.early(b"b", Overloaded)
    assert caplog.records == []
    clock.move(PERIOD_S)
    counts = {fields["request_id"]: fields["refused"] for fields in told(caplog)}
    assert counts == {"req-a": 1000, "req-b": 1}
    assert clock.due == []
    repeats.early(b"a", Overloaded)
    repeats.close()
    assert sum(fields["refused"] for fields in told(caplog)) == 1002
    clock.move(PERIOD_S)
    assert len(caplog.records) == 3


def test_a_new_refusal_takes_the_place_of_the_one_before_and_loses_no_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    repeats = Repeats(clock)
    repeats.tell(b"a", BUSY, "req-1")
    repeats.early(b"a", Overloaded)
    clock.move(2)
    repeats.tell(b"a", BUSY, "req-2")
    early = repeats.early(b"a", Overloaded)
    assert early is not None
    assert early.request_id == "req-2"
    assert [fields["request_id"] for fields in told(caplog)] == ["req-1"]


def test_who_was_told_longest_ago_is_forgotten_first() -> None:
    repeats = Repeats(ManualClock(), size=2)
    for caller in (b"a", b"b", b"a", b"c"):
        repeats.tell(caller, BUSY, "req")
    early = {name for name in (b"a", b"b", b"c") if repeats.early(name, Overloaded)}
    assert early == {b"a", b"c"}


def test_callers_are_known_by_their_key_else_by_their_address() -> None:
    key, none = Shown(authorization=("Bearer k",)), Shown()
    assert caller_of(ANYBODY, key, "10.0.0.1") == caller_of(ANYBODY, key, "10.0.0.2")
    assert caller_of(ANYBODY, none, "10.0.0.1") != caller_of(ANYBODY, none, "10.0.0.2")
    assert b"Bearer k" not in caller_of(ANYBODY, key, "")


def test_callers_with_keys_of_ours_are_known_by_tenant_and_key_however_they_show_it() -> None:
    mine, other = (Caller(tenant="t", key_id=key) for key in ("tw_a", "tw_b"))
    bearer, header = Shown(authorization=("Bearer k",)), Shown(api_key=("k",))
    assert caller_of(mine, bearer, "10.0.0.1") == caller_of(mine, header, "10.0.0.2")
    assert caller_of(mine, bearer, "") != caller_of(other, bearer, "")
