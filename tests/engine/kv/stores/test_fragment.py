"""A record's share on one node is found out when it is not what was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engine.kv.record import layout_digest
from services.engine.kv.stores.fragment import (
    HEADER_BYTES,
    BadFragment,
    Fragment,
    Stripe,
    opened_fragment,
    sealed_fragment,
)
from tests.engine.kv.stores.bed import LAYOUT_DIGEST, address_of

STRIPE = Stripe(code=1, data=4, parity=2, size=999, digest=bytes(range(16)))
FRAGMENT = Fragment(STRIPE, 5, b"payload " * 20)
SEALED = sealed_fragment(FRAGMENT, address_of(1), LAYOUT_DIGEST)


def test_a_fragment_comes_back_as_it_was_sealed() -> None:
    for record in (SEALED, bytearray(SEALED), memoryview(SEALED)):
        opened = opened_fragment(record, address_of(1), LAYOUT_DIGEST)
        assert opened == FRAGMENT
        assert type(opened.payload) is bytes
    assert len(SEALED) == HEADER_BYTES + len(FRAGMENT.payload)


@given(position=st.integers(0, len(SEALED) - 1), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(position: int, bit: int) -> None:
    spoiled = bytearray(SEALED)
    spoiled[position] ^= 1 << bit
    with pytest.raises(BadFragment):
        opened_fragment(spoiled, address_of(1), LAYOUT_DIGEST)


@given(size=st.integers(0, len(SEALED) - 1))
def test_a_fragment_that_is_cut_or_longer_is_noticed(size: int) -> None:
    for spoiled in (SEALED[:size], SEALED + bytes(size + 1)):
        with pytest.raises(BadFragment):
            opened_fragment(spoiled, address_of(1), LAYOUT_DIGEST)


def test_a_fragment_of_another_record_or_layout_is_noticed() -> None:
    for address, layout in (
        (address_of(2), LAYOUT_DIGEST),
        (address_of(1), layout_digest("other")),
    ):
        with pytest.raises(BadFragment):
            opened_fragment(SEALED, address, layout)
