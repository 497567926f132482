from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.detokenizer import Detokenizer
from services.codec.tokenizer import Tokenizer
from services.shared.model_folder import ModelFolder


@pytest.fixture(scope="module")
def tokenizer(model_folder: ModelFolder) -> Tokenizer:
    return Tokenizer(model_folder)


def byte_ids(tokenizer: Tokenizer, data: bytes) -> list[int]:
    by_byte = {tokenizer.token_bytes(token): token for token in range(tokenizer.vocabulary_size)}
    return [by_byte[bytes([byte])] for byte in data]


def run(tokenizer: Tokenizer, groups: list[list[int]]) -> str:
    detokenizer = Detokenizer(tokenizer)
    return "".join([*map(detokenizer.push, groups), detokenizer.finish()])


@given(groups=st.lists(st.lists(st.integers(0, 49_160), max_size=6), max_size=8))
def test_grouping_changes_nothing(tokenizer: Tokenizer, groups: list[list[int]]) -> None:
    ids = [token for group in groups for token in group]
    visible = [token for token in ids if token not in tokenizer.control_ids]
    data = b"".join(map(tokenizer.token_bytes, visible))
    expected = data.decode(errors="replace")
    assert run(tokenizer, groups) == expected
    detokenizer = Detokenizer(tokenizer)
    assert "".join([*map(detokenizer.push_one, ids), detokenizer.finish()]) == expected


# SmolLM2's vocabulary lacks some bytes, and its tokenizer drops them.
_known = st.text(st.characters(exclude_categories=["C"], max_codepoint=0x3FFFF), max_size=30)


@given(text=_known)
def test_text_comes_back_without_replacement_characters(tokenizer: Tokenizer, text: str) -> None:
    if "\N{REPLACEMENT CHARACTER}" in text:
        return
    detokenizer = Detokenizer(tokenizer)
    parts = [detokenizer.push([token]) for token in tokenizer.encode_plainly(text)]
    assert all("\N{REPLACEMENT CHARACTER}" not in part for part in parts)
    assert "".join(parts) + detokenizer.finish() == text


def test_split_character_waits(tokenizer: Tokenizer) -> None:
    first, second, third, fourth = byte_ids(tokenizer, "😀".encode())
    detokenizer = Detokenizer(tokenizer)
    assert detokenizer.push([*byte_ids(tokenizer, b"a"), first, second]) == "a"
    assert detokenizer.is_waiting
    assert detokenizer.push([third]) == ""
    assert detokenizer.push([fourth]) == "😀"
    assert not detokenizer.is_waiting


def test_unfinished_character_becomes_one_replacement_at_the_end(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(tokenizer)
    assert detokenizer.push(byte_ids(tokenizer, "😀".encode()[:3])) == ""
    assert detokenizer.finish() == "\N{REPLACEMENT CHARACTER}"


def test_control_tokens_print_nothing_unless_shown(tokenizer: Tokenizer) -> None:
    ids = [1, *tokenizer.encode_plainly("user"), 2]
    assert Detokenizer(tokenizer).push(ids) == "user"
    shown = Detokenizer(tokenizer, shown=frozenset({2}))
    assert shown.push(ids) == "user<|im_end|>"


def test_token_with_a_character_of_its_own_ends_what_was_unfinished(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(tokenizer, characters={2: "\ud800"})
    assert detokenizer.push_one(byte_ids(tokenizer, b"\xf0")[0]) == ""
    assert detokenizer.push_one(2) == "\N{REPLACEMENT CHARACTER}\ud800"
    assert detokenizer.push_one(1) == ""


def test_unknown_ids_print_nothing(tokenizer: Tokenizer) -> None:
    assert Detokenizer(tokenizer).push([tokenizer.vocabulary_size + 5, -1]) == ""
