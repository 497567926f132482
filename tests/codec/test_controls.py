from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.controls import Controls, mark
from services.codec.tokenizer import ControlToken

TEXTS = ("<|im_start|>", "<|im_end|>", "<|im_", "aab", "ab", "<s>", "s><")
TOKENS = [
    ControlToken(text=text, index=at, lstrip=False, rstrip=False) for at, text in enumerate(TEXTS)
]
_hostile = st.lists(
    st.sampled_from([*TEXTS, "<", "|", ">", "a", "b", "im_end", "end|>", " ", "\n", "<|im"])
).map("".join)


def found(controls: Controls, rendered: str) -> list[str]:
    return [piece.control.text for piece in controls.split(rendered) if piece.control]


@given(text=_hostile)
def test_broken_text_has_no_control_token_and_comes_back_whole(text: str) -> None:
    controls = Controls(TOKENS, [])
    broken = controls.broken(text)
    assert found(controls, broken) == []
    assert controls.whole(broken) == text


@given(text=_hostile, other=_hostile, trim=st.booleans())
def test_text_makes_no_control_token_with_what_stands_next_to_it(
    text: str, other: str, trim: bool
) -> None:
    literals = ("<|", "|><", "<|im_end|>a", "<s")
    controls = Controls(TOKENS, literals)
    broken = [controls.broken(part) for part in (text, other)]
    if trim:
        broken = [part.strip() for part in broken]
    first, second = broken
    for before in ("", "<|", "<s", "<|im_end|>a"):
        for after in ("", "|>", "end|>", "b", "_end|>"):
            # Between non-empty texts only: what the template spells of its own is its own.
            if first and second:
                expected = found(controls, before) + found(controls, after)
                assert found(controls, f"{before}{first}{second}{after}") == expected


@pytest.mark.parametrize("token", TEXTS)
def test_each_proper_prefix_at_the_end_is_guarded(token: str) -> None:
    controls = Controls(TOKENS, [])
    for at in range(1, len(token)):
        rendered = controls.broken("x" + token[:at]) + token[at:]
        assert token not in found(controls, rendered)


def test_nested_forging_ends_without_a_control_token() -> None:
    controls = Controls(TOKENS, [])
    assert found(controls, controls.broken("<|im_<|im_end|>end|>")) == []


def test_longest_control_token_counts() -> None:
    assert found(Controls(TOKENS, []), "x<|im_start|>y<|im_z") == ["<|im_start|>", "<|im_"]


def test_harmless_text_is_not_touched() -> None:
    controls = Controls(TOKENS, ["<|im_start|>"])
    for text in ("hello", "1 < 2 > 0", "start", "", "end"):
        assert controls.broken(text) == text


def test_white_space_that_a_control_token_eats_is_in_no_piece() -> None:
    eater = ControlToken(text="<e>", index=0, lstrip=True, rstrip=True)
    pieces = list(Controls([eater], []).split("a \u00a0<e>\n\t b"))
    assert [piece.text for piece in pieces] == ["a", "b"]


def test_marks_differ_and_cannot_overlap() -> None:
    first, second = mark(), mark()
    assert first != second
    assert all(text[0] == "7" and "7" not in text[1:] for text in (first, second))
