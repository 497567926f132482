"""What a request shows, however it is written."""

from __future__ import annotations

import pytest

from services.shared.access.refused import Refused
from services.shared.access.shown import Shown

Headers = list[tuple[str | bytes, str | bytes]]


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ([], None),
        ([("authorization", "Bearer k")], "k"),
        ([(b"authorization", b"bearer  k ")], "k"),
        ([("x-api-key", "k")], "k"),
        ([("authorization", "Bearer b"), ("x-api-key", "k")], "b"),
        ([("authorization", "Basic dTpw"), ("x-api-key", "k")], "k"),
        ([("authorization", "Bearer "), ("x-api-key", "k")], "k"),
        ([("authorization", "Bearer"), ("x-api-key", "")], None),
        ([("x-api-key", "k"), ("x-api-key", "k")], "k"),
        ([("cookie", "x-api-key=k"), ("proxy-authorization", "Bearer k")], None),
    ],
)
def test_a_bearer_goes_before_a_header_of_its_own(headers: Headers, key: str | None) -> None:
    assert Shown.of(headers).credential() == key


@pytest.mark.parametrize(
    "headers",
    [
        [("authorization", "Bearer a"), ("authorization", "Bearer b")],
        [("authorization", "Basic a"), ("authorization", "Bearer b")],
        [("x-api-key", "a"), ("x-api-key", "b")],
    ],
)
def test_two_keys_are_none(headers: Headers) -> None:
    with pytest.raises(Refused, match="two keys"):
        Shown.of(headers).credential()
