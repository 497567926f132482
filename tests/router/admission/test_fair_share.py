"""Accounts of those that share something."""

from __future__ import annotations

import pytest

from services.router.admission.fair_share import MAX_REMEMBERED, FairShare


def serve_least(share: FairShare[str], *keys: str, tokens: float = 1) -> str:
    least = min(keys, key=share.__getitem__)
    share.serve(least, tokens)
    return least


def test_turns_follow_weights() -> None:
    share = FairShare[str]({"a": 3.0, "b": 1.0}.__getitem__)
    share.begin("a")
    share.begin("b")
    served = [serve_least(share, "a", "b") for _ in range(40)]
    assert served.count("a") == 30


def test_who_begins_later_has_no_credit_for_the_time_before() -> None:
    share = FairShare[str]()
    share.begin("a")
    for _ in range(100):
        share.serve("a", 1)
    share.begin("b")
    served = [serve_least(share, "a", "b") for _ in range(20)]
    assert served.count("b") == pytest.approx(10, abs=1)


def test_to_stop_wanting_for_a_moment_does_not_help() -> None:
    share = FairShare[str]()
    share.begin("a")
    share.begin("b")
    share.serve("a", 100)
    share.end("a")
    share.begin("a")
    assert [serve_least(share, "a", "b", tokens=10) for _ in range(10)] == ["b"] * 10


def test_what_the_others_have_caught_up_with_is_forgotten() -> None:
    share = FairShare[str]()
    share.begin("a")
    for name in map(str, range(10)):
        share.begin(name)
        share.serve(name, 5)
        share.end(name)
    assert len(share) == 11
    share.serve("a", 5)
    share.serve("a", 1)
    assert len(share) == 1


def test_a_million_names_leave_no_more_than_a_bounded_memory() -> None:
    share = FairShare[int]()
    share.begin(-1)
    for name in range(3 * MAX_REMEMBERED):
        share.begin(name)
        share.serve(name, 5)
        share.end(name)
    assert len(share) == MAX_REMEMBERED + 1
    share.end(-1)
    assert len(share) == 0


def test_a_correction_moves_turns_for_those_who_want_and_for_those_who_come_again() -> None:
    share = FairShare[str]()
    share.begin("a")
    share.begin("b")
    share.charge("a", 3)
    assert [serve_least(share, "a", "b") for _ in range(4)] == ["b", "b", "b", "a"]
    share.charge("c", 50)
    share.begin("c")
    assert share["c"] > share["a"] + 40
    share.charge("c", -50)
    assert share["c"] <= share["a"]


def test_a_floor_takes_the_credit_of_one_that_could_not_be_served() -> None:
    share = FairShare[str]()
    share.begin("a")
    share.begin("b")
    for _ in range(10):
        share.serve("a", 10)
    assert share.serve("b", 1, floor=90) == 90
    assert share["b"] == 91
    share.lift("b", 95)
    share.lift("nobody", 1000)
    assert (share["b"], share["nobody"]) == (95, 90)
