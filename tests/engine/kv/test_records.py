"""Records of one layout: what is read is what was written, or it is not used."""

from __future__ import annotations

import pytest

from services.engine.kv.record import BadRecord
from services.engine.kv.records import BAD_RECORDS, Records
from services.shared.stream.events import CacheMiss
from tests.engine.kv.shelf import Shelf, roomy

ADDRESSES = [bytes([number]) * 16 for number in range(4)]
A, B, C, D = ADDRESSES


def test_what_is_written_is_read() -> None:
    records = Records(Shelf(), "layout")
    records.write(A, roomy(b"some bytes"))
    assert records.read(A) == memoryview(b"some bytes")
    assert records.read(B) is None
    assert records.present(ADDRESSES) == [True, False, False, False]
    assert records.flush() == 1
    assert records.read(A) is None


@pytest.mark.parametrize("spoilt", ["flipped", "cut", "empty", "another's"])
def test_a_record_that_is_not_the_block_is_no_block(spoilt: str) -> None:
    shelf = Shelf()
    records = Records(shelf, "layout")
    records.write(A, roomy(b"some bytes"))
    records.write(B, roomy(b"else bytes"))
    whole = shelf.records[A]
    shelf.records[A] = {
        "flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "cut": whole[:-1],
        "empty": b"",
        "another's": shelf.records[B],
    }[spoilt]
    with pytest.raises(BadRecord) as caught:
        records.read(A)
    assert caught.value.miss is CacheMiss.CHECKSUM


def test_a_record_of_another_layout_is_told_as_such() -> None:
    shelf = Shelf()
    Records(shelf, "another layout").write(A, roomy(b"some bytes"))
    with pytest.raises(BadRecord) as caught:
        Records(shelf, "layout").read(A)
    assert caught.value.miss is CacheMiss.LAYOUT


def test_a_bad_record_is_not_there_until_it_is_written_anew() -> None:
    shelf = Shelf()
    shelf.records[A] = b"bad"
    records = Records(shelf, "layout")
    assert records.present([A]) == [True]
    with pytest.raises(BadRecord):
        records.read(A)
    assert records.present([A]) == [False]
    records.write(A, roomy(b"good"))
    assert records.present([A]) == [True]
    assert records.read(A) == memoryview(b"good")


def test_bad_records_are_remembered_up_to_a_bound() -> None:
    shelf = Shelf()
    records = Records(shelf, "layout")
    addresses = [b"%016d" % number for number in range(BAD_RECORDS + 1)]
    for address in addresses:
        shelf.records[address] = b"bad"
        with pytest.raises(BadRecord):
            records.read(address)
    assert records.present(addresses) == [True] + [False] * BAD_RECORDS
