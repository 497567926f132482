"""Keys go to names by weight, and stay where they are when others come or go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from services.router.balancing.rendezvous import draw, key_of

KEYS = [key_of((str(number),)) for number in range(2000)]


def winner(key: bytes, weights: Mapping[str, float]) -> str:
    return min(weights, key=lambda name: draw(key, name, weights[name]))


def test_names_win_keys_in_proportion_to_their_weights() -> None:
    counts = Counter(winner(key, {"a": 1, "b": 3}) for key in KEYS)
    assert counts["b"] == pytest.approx(1500, rel=0.05)


def test_a_name_that_leaves_or_comes_moves_only_its_own_keys() -> None:
    all_names = {"a": 1, "b": 2, "c": 1}
    for key in KEYS:
        before, after = winner(key, all_names), winner(key, {"a": 1, "b": 2})
        assert before in (after, "c")


def test_more_weight_takes_keys_and_gives_none() -> None:
    for key in KEYS:
        before, after = winner(key, {"a": 1, "b": 1}), winner(key, {"a": 1, "b": 2})
        assert after in (before, "b")


def test_parts_do_not_run_together() -> None:
    assert key_of(("ab", "c")) != key_of(("a", "bc"))
    assert key_of(("a", b"b")) == key_of(("a", "b"))
