"""Whose turn it is, by shares, whatever came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from services.router.balancing.turns import Turns


def given(turns: Turns, weights: Mapping[str, float], count: int, lag: float = 8) -> Counter[str]:
    """How many turns each has of the next `count`."""
    counts = Counter[str]()
    turns.know(list(weights))
    for _ in range(count):
        starts = dict(zip(weights, turns.starts(weights, lag), strict=True))
        name = min(weights, key=lambda one: (starts[one], one))
        turns.take(name, weights[name], lag)
        counts[name] += 1
    return counts


def test_turns_follow_weights_exactly() -> None:
    assert given(Turns(), {"a": 1, "b": 2, "c": 5}, 80) == {"a": 10, "b": 20, "c": 50}


def test_another_weight_counts_from_now_on() -> None:
    turns = Turns()
    given(turns, {"a": 1, "b": 1}, 200)
    assert given(turns, {"a": 1, "b": 3}, 80) == {"a": 20, "b": 60}


def test_one_that_is_new_is_owed_nothing() -> None:
    turns = Turns()
    given(turns, {"a": 1}, 500)
    assert given(turns, {"a": 1, "b": 1}, 10) == {"a": 5, "b": 5}


def test_one_that_was_away_is_owed_the_lag_at_most() -> None:
    turns = Turns()
    turns.know(["a", "b"])
    for _ in range(500):
        turns.take("a", 1, 8)
    assert given(turns, {"a": 1, "b": 1}, 20) == {"a": 6, "b": 14}


def test_one_that_left_is_forgotten() -> None:
    turns = Turns()
    given(turns, {"a": 1, "b": 1}, 100)
    given(turns, {"a": 1}, 100)
    assert given(turns, {"a": 1, "b": 1}, 10) == {"a": 5, "b": 5}
