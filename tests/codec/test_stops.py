from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.stops import Pass, StopMatcher, Stopped
from services.shared.errors import InvalidRequest

_texts = st.text(alphabet="ab<", max_size=40)
_stops = st.lists(st.text(alphabet="ab<", min_size=1, max_size=6), max_size=5).map(tuple)


def whole_search(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    for at in range(len(text)):
        found = [stop for stop in stops if text.startswith(stop, at)]
        if found:
            return text[:at], max(found, key=len)
    return text, None


def run(pieces: list[str], stops: tuple[str, ...]) -> tuple[str, str | None]:
    matcher = StopMatcher(stops)
    text = ""
    for piece in pieces:
        result = matcher.push(piece)
        text += result.text
        if isinstance(result, Stopped):
            return text, result.stop
    result = matcher.finish()
    return text + result.text, result.stop if isinstance(result, Stopped) else None


@given(pieces=st.lists(_texts, max_size=8), stops=_stops)
def test_result_is_that_of_a_search_in_the_whole_text(
    pieces: list[str], stops: tuple[str, ...]
) -> None:
    assert run(pieces, stops) == whole_search("".join(pieces), stops)


@given(text=_texts, stops=_stops)
def test_only_what_may_begin_a_stop_is_withheld(text: str, stops: tuple[str, ...]) -> None:
    matcher = StopMatcher(stops)
    if whole_search(text, stops)[1] is not None:
        return
    prefixes = {stop[:at] for stop in stops for at in range(1, len(stop))}
    withheld = max((size for size in range(len(text) + 1) if text[-size:] in prefixes), default=0)
    assert matcher.push(text) == Pass(text[: len(text) - withheld])


def test_single_stop_is_told_with_its_last_character() -> None:
    matcher = StopMatcher(("###",))
    assert matcher.push("a##") == Pass("a")
    assert matcher.push("#b") == Stopped("", "###")
    assert matcher.push("c") == Pass("")
    assert matcher.finish() == Pass("")


def test_longer_stop_at_the_same_place_wins() -> None:
    matcher = StopMatcher(("ab", "abc"))
    assert matcher.push("xab") == Pass("x")
    assert matcher.push("c") == Stopped("", "abc")


def test_waiting_match_comes_with_the_end() -> None:
    matcher = StopMatcher(("ab", "abc"))
    assert matcher.push("xab") == Pass("x")
    assert matcher.finish() == Stopped("", "ab")


def test_withheld_text_comes_with_the_end() -> None:
    matcher = StopMatcher(("<tool>",))
    assert matcher.push("a < b <tool") == Pass("a < b ")
    assert matcher.finish() == Pass("<tool")


def test_empty_stop_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must not be empty"):
        StopMatcher(("a", ""))


@pytest.mark.parametrize("stops", [("a" * 999 + "b",), tuple("a" * n + "b" for n in range(1, 200))])
def test_a_megabyte_of_near_matches_passes(stops: tuple[str, ...]) -> None:
    text = "a" * 2**20
    matcher = StopMatcher(stops)
    passed = matcher.push(text)
    assert passed.text + matcher.finish().text == text


def test_each_character_is_followed_a_bounded_number_of_times() -> None:
    class Steps(StopMatcher):
        steps = 0

        def _advance(self, char: str) -> None:
            node = self._node
            super()._advance(char)
            # Suffix links climb down; what they climb was paid for by going up.
            self.steps += 1 + max(0, node.depth - self._node.depth)

    matcher = Steps(("a" * 50 + "b",))
    text = ("a" * 49 + "c") * 400
    matcher.push(text)
    assert matcher.steps <= 2 * len(text)
