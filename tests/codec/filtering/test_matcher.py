"""Words and patterns are found in texts that come in pieces, and nothing of them is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.filtering.content_filter import (
    Blocked,
    Cleared,
    OutputMatcher,
    Passage,
    Refused,
    Ruling,
)
from services.codec.filtering.patterns import PatternFilter
from services.codec.filtering.rules_file import Rule
from tests.codec.filtering.ruled import cut, expected, run

_texts = st.text(alphabet="ab A\u0301\u200béß.1", max_size=30)
_words = st.text(alphabet="ab ", min_size=1, max_size=5).filter(lambda word: word.strip() == word)
_patterns = st.sampled_from(
    ["a[b1]", "(ab|b){1,3}a", "b?a?[^a]b", ".{2}b", "é", r"a\s\w", "a{2,3}"]
)
_rules = st.lists(
    st.builds(
        Rule,
        name=st.uuids().map(str),
        words=st.lists(_words, max_size=3).map(tuple),
        patterns=st.lists(_patterns, max_size=2).map(tuple),
        whole_words=st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def pushed(matcher: OutputMatcher, pieces: list[str]) -> Ruling:
    for piece in pieces:
        ruling = matcher.push(piece)
        if isinstance(ruling, Blocked):
            return ruling
    return matcher.pause()


def words(*texts: str, whole_words: bool = True) -> PatternFilter:
    return PatternFilter([Rule(name="r", words=texts, whole_words=whole_words)])


@given(text=_texts, places=st.lists(st.integers(0, 40), max_size=8), rules=_rules)
def test_pieces_change_nothing_and_the_first_match_counts(
    text: str, places: list[int], rules: list[Rule]
) -> None:
    matcher = PatternFilter(rules).output_matcher()
    assert run(matcher, cut(text, places)) == expected(text, rules)


@given(parts=st.lists(_texts, max_size=4), places=st.lists(st.integers(0, 40)), rules=_rules)
def test_pieces_change_nothing_where_a_text_is_interrupted(
    parts: list[str], places: list[int], rules: list[Rule]
) -> None:
    content_filter = PatternFilter(rules)

    def shown(pieces: list[list[str]]) -> list[tuple[str, str | None]]:
        matcher, told = content_filter.output_matcher(), []
        received = 0
        for part in pieces:
            ruling = pushed(matcher, part)
            rule = ruling.rule if isinstance(ruling, Blocked) else None
            text = "".join(part)
            told.append((text[: ruling.upto - received], rule))
            received += len(text)
            if rule is not None:
                break
        return told

    assert shown([cut(part, places) for part in parts]) == shown([[part] for part in parts])


@pytest.mark.parametrize(
    "text",
    [
        "a Bad Word b",
        "a BAD\n\tword b",
        "a \uff42\uff41\uff44 word b",
        "a b\u200bad wor\u00add b",
        "a \u00a0bad   word, b",
    ],
)
def test_a_phrase_is_found_however_it_is_written(text: str) -> None:
    shown, rule = run(words("bad word").output_matcher(), text)
    assert rule == "r"
    assert shown.rstrip() == "a"


@pytest.mark.parametrize("text", ["badly", "forbade", "bad\u0301", "b ad"])
def test_parts_of_words_are_not_found(text: str) -> None:
    assert run(words("bad").output_matcher(), text) == (text, None)


def test_accents_count_however_they_are_spelled() -> None:
    for text in ("caf\u00e9", "cafe\u0301", "CAFÉ"):
        assert run(words("café").output_matcher(), text) == ("", "r")
    assert run(words("café").output_matcher(), "cafe") == ("cafe", None)


def test_ligatures_and_sharp_s_are_letters() -> None:
    assert run(words("strasse", "fin").output_matcher(), "Straße") == ("", "r")
    assert run(words("strasse", "fin").output_matcher(), "x ﬁn") == ("x ", "r")


def test_only_what_may_begin_a_match_is_withheld() -> None:
    matcher = words("zebra").output_matcher()
    assert matcher.push("hello wor") == Cleared(9)
    assert matcher.push("ld z") == Cleared(12)
    assert matcher.push("eb") == Cleared(12)
    # The last character waits for what may join it, where a match has begun.
    assert matcher.push("u") == Cleared(12)
    assert matcher.push(" ") == Cleared(17)
    assert matcher.push("zebra") == Cleared(17)
    assert matcher.push("s") == Cleared(17)
    assert matcher.push("!") == Cleared(24)


def test_what_is_withheld_has_a_bound() -> None:
    matcher = PatternFilter([Rule(name="r", patterns=("1{200}",), whole_words=False)])
    withheld = matcher.output_matcher()
    for at in range(300):
        ruling = withheld.push("1" if at % 150 else "2")
        assert at + 1 - ruling.upto <= 201


def test_a_word_that_an_interruption_cuts_is_not_completed() -> None:
    matcher = words("bad").output_matcher()
    assert matcher.push("so ba") == Cleared(3)
    assert matcher.pause() == Cleared(5)
    matcher.push("d")
    assert matcher.push(" .") == Blocked(5, "r")


def test_what_follows_an_interruption_may_be_a_word() -> None:
    matcher = words("bad").output_matcher()
    matcher.push("all")
    matcher.pause()
    matcher.push("bad")
    assert matcher.pause() == Blocked(3, "r")


def test_a_prompt_tells_where_and_why() -> None:
    content_filter = PatternFilter(
        [Rule(name="one", words=("bad",)), Rule(name="two", patterns=(r"\d{4}-\d{4}",))]
    )
    passages = [Passage("messages[0]", ("hi", "ba")), Passage("messages[1]", ("x", "1234-5678."))]
    assert content_filter.check_prompt(passages) == Refused(1, "two")
    assert content_filter.check_prompt(passages[:1]) is None
