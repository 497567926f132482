"""A record is the block that was asked for, whole, or it is none."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.engine.kv.record import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    BadRecord,
    checksum,
    layout_digest,
    opened,
    sealed,
)
from services.shared.stream.events import CacheMiss

ADDRESS, OTHER_ADDRESS = bytes(range(16)), bytes(range(1, 17))
LAYOUT, OTHER_LAYOUT = layout_digest("one layout"), layout_digest("another layout")
PAYLOAD = bytes(range(256)) * 3
RECORD = sealed(ADDRESS, LAYOUT, PAYLOAD)


def miss_of(record: bytes, address: bytes = ADDRESS, layout: bytes = LAYOUT) -> CacheMiss:
    with pytest.raises(BadRecord) as raised:
        opened(record, address, layout)
    return raised.value.miss


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_record_opens_to_what_was_sealed(kind: type) -> None:
    record = sealed(ADDRESS, LAYOUT, kind(PAYLOAD))
    assert record == RECORD
    assert opened(kind(record), ADDRESS, LAYOUT) == PAYLOAD
    assert len(record) == HEADER_BYTES + len(PAYLOAD)


def test_wider_items_are_sealed_as_their_bytes() -> None:
    words = memoryview(PAYLOAD).cast("I")
    assert sealed(ADDRESS, LAYOUT, words) == RECORD
    assert checksum(ADDRESS, LAYOUT, words) == checksum(ADDRESS, LAYOUT, PAYLOAD)
    assert len(checksum(ADDRESS, LAYOUT, words)) == CHECKSUM_BYTES


def test_an_empty_block_is_a_record_too() -> None:
    assert bytes(opened(sealed(ADDRESS, LAYOUT, b""), ADDRESS, LAYOUT)) == b""


def test_opening_copies_nothing() -> None:
    held = bytearray(RECORD)
    payload = opened(held, ADDRESS, LAYOUT)
    assert payload.obj is held


@given(position=st.integers(0, len(RECORD) - 1), bit=st.integers(0, 7))
def test_no_flipped_bit_is_missed(position: int, bit: int) -> None:
    spoiled = bytearray(RECORD)
    spoiled[position] ^= 1 << bit
    assert miss_of(bytes(spoiled)) in (CacheMiss.CHECKSUM, CacheMiss.LAYOUT)


@given(size=st.integers(0, len(RECORD) - 1), more=st.binary(min_size=1, max_size=64))
def test_no_other_length_is_missed(size: int, more: bytes) -> None:
    assert miss_of(RECORD[:size]) is CacheMiss.CHECKSUM
    assert miss_of(RECORD + more) is CacheMiss.CHECKSUM


@given(st.binary(max_size=200))
def test_other_bytes_are_no_record(noise: bytes) -> None:
    assert miss_of(noise) is CacheMiss.CHECKSUM


def test_another_blocks_record_is_told_by_its_address() -> None:
    assert miss_of(RECORD, address=OTHER_ADDRESS) is CacheMiss.CHECKSUM
    # Neither does it help to write the wanted address over its own.
    forged = RECORD.replace(ADDRESS, OTHER_ADDRESS, 1)
    assert miss_of(forged, address=OTHER_ADDRESS) is CacheMiss.CHECKSUM


def test_a_whole_record_of_another_layout_is_told_apart_from_damage() -> None:
    other = sealed(ADDRESS, OTHER_LAYOUT, PAYLOAD)
    assert miss_of(other) is CacheMiss.LAYOUT
    assert miss_of(other[:-1]) is CacheMiss.CHECKSUM


def test_a_record_of_a_later_version_is_of_another_layout() -> None:
    later = bytearray(RECORD)
    struct.pack_into("<I", later, 4, 2)
    assert miss_of(bytes(later)) is CacheMiss.LAYOUT


def test_layouts_have_digests_of_their_own() -> None:
    assert len({layout_digest(f"layout {number}") for number in range(1000)}) == 1000
    assert len(LAYOUT) == 8
