"""The time for a text grows as the text does, whatever the rules are."""

from __future__ import annotations

import random
from time import process_time

import pytest

from services.codec.filtering import automaton
from services.codec.filtering.content_filter import Passage
from services.codec.filtering.patterns import PatternFilter
from services.codec.filtering.rules_file import Rule

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spent_s(content_filter: PatternFilter, text: str) -> float:
    began = process_time()
    assert content_filter.check_prompt([Passage("prompt", (text,))]) is None
    return process_time() - began


def ten_thousand_words() -> tuple[Rule, str]:
    """And many of their beginnings."""
    rng = random.Random(1)  # noqa: S311 no secret
    words = ["".join(rng.choices(LETTERS, k=10)) for _ in range(10_000)]
    beginnings = [word[: rng.randrange(4, 10)] for word in rng.choices(words, k=2**14)]
    return Rule(name="r", words=tuple(words)), " ".join(beginnings)


def runs() -> tuple[Rule, str]:
    """Each place of a long run may begin a match, and none does."""
    return Rule(name="r", patterns=("a{1,200}b", "(a|aa){50}c"), whole_words=False), "a" * 2**16


def marked() -> tuple[Rule, str]:
    return Rule(name="r", words=("été",)), "e\u0301t\u200b" * 2**14


@pytest.mark.parametrize("case", [ten_thousand_words, runs, marked])
def test_twice_the_text_takes_about_twice_the_time(case: object) -> None:
    rule, text = case()  # type: ignore[operator]
    content_filter = PatternFilter([rule])
    spent_s(content_filter, text)
    once = min(spent_s(content_filter, text) for _ in range(2))
    twice = min(spent_s(content_filter, text * 2) for _ in range(2))
    assert twice < 4 * once


def test_a_text_that_makes_many_states_finds_them_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automaton, "MAX_STATES", 50)
    rng = random.Random(1)  # noqa: S311 no secret
    rule = Rule(name="r", patterns=("a[ab]{12}c",), whole_words=False)
    text = "".join(rng.choices("ab", k=5000))
    matcher = PatternFilter([rule]).output_matcher()
    steps = [matcher.push(char).upto for char in text]
    assert steps == sorted(steps)
    assert matcher.push("a" * 12 + "bbc").upto == len(text) + 1
