"""Escaped characters of JSON hide nothing, and are never cut."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from services.codec.filtering.content_filter import Cleared, Ruling
from services.codec.filtering.json_escapes import JsonMatcher
from services.codec.filtering.patterns import PatternFilter
from services.codec.filtering.rules_file import Rule
from tests.codec.filtering.ruled import cut, run

BAD = PatternFilter([Rule(name="r", words=("bad", "😀b"))])
_parts = st.sampled_from(
    [
        *("b", "a", "d", " ", '"', "\\u0062", "\\u0041", "\\n", "\\\\", "\\", "u", "\\ud83d"),
        *("\\ude00", "\\uD83", "b😀", "0041", "\\u", '{"x": "'),
    ]
)


class Heard:
    """Clears all, and keeps it."""

    def __init__(self) -> None:
        self.text = ""

    def push(self, text: str) -> Ruling:
        self.text += text
        return self.pause()

    def pause(self) -> Ruling:
        return Cleared(len(self.text))


@given(parts=st.lists(_parts, max_size=12), places=st.lists(st.integers(0, 60), max_size=8))
def test_pieces_change_nothing(parts: list[str], places: list[int]) -> None:
    text = "".join(parts)
    pieces = cut(text, places)
    assert run(JsonMatcher(BAD.output_matcher()), pieces) == run(
        JsonMatcher(BAD.output_matcher()), [text]
    )


@given(value=st.text(), ensure_ascii=st.booleans(), places=st.lists(st.integers(0, 200)))
def test_what_json_says_is_looked_at(value: str, ensure_ascii: bool, places: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    heard = Heard()
    assert run(JsonMatcher(heard), cut(text, places)) == (text, None)
    # Half a pair stands for nothing, and counts as one unknown character.
    said = value.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
    assert heard.text.encode(errors="replace") == f'"{said}"'.encode(errors="replace")


def test_a_word_in_escapes_is_blocked() -> None:
    assert run(JsonMatcher(BAD.output_matcher()), '{"x": "a \\u0042a\\u0064"}') == (
        '{"x": "a ',
        "r",
    )
    assert run(JsonMatcher(BAD.output_matcher()), '"so\\nbad\\n"') == ('"so\\n', "r")
