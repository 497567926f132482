from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.codec.output.json_prefix import MAX_DEPTH, JsonPrefix

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
_objects = st.dictionaries(st.text(max_size=4), _json, max_size=4)


@given(value=_objects, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_objects_are_taken_to_their_end(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    prefix = JsonPrefix()
    assert prefix.push(text + " {") == len(text)
    assert prefix.is_complete


@given(value=_objects, at=st.integers(0, 200))
def test_any_beginning_can_be_closed(value: Any, at: int) -> None:
    text = json.dumps(value)[: max(1, at)]
    prefix = JsonPrefix()
    assert prefix.push(text) == len(text)
    json.loads(text + prefix.closing())


@given(text=st.text('{}[]",:\\ue0-.1trn a', max_size=12))
def test_what_json_takes_is_taken_and_no_more(text: str) -> None:
    prefix = JsonPrefix(only_object=False)
    taken = prefix.push(text + " ")
    try:
        json.loads(text)
    except ValueError:
        return
    assert taken >= len(text.rstrip())
    assert not prefix.is_broken


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('{"a" 1}', 5),
        ("{'a': 1}", 1),
        ('{"a": 01}', 7),
        ('{"a": 1,}', 8),
        ('{"a": "\n"}', 7),
        ('{"a": NaN}', 6),
        ('{"a": tru1}', 9),
        ('{"a": "\\x"}', 8),
        ('{"a": [1}', 8),
        ("[1]", 0),
    ],
)
def test_what_is_no_json_is_taken_up_to_the_fault(text: str, taken: int) -> None:
    prefix = JsonPrefix()
    assert prefix.push(text) == taken
    assert prefix.is_broken
    assert prefix.push("}") == 0
    if taken:
        json.loads(text[:taken] + prefix.closing())


def test_nesting_has_a_limit() -> None:
    prefix = JsonPrefix()
    assert prefix.push('{"a":' * 1000) == 5 * MAX_DEPTH
