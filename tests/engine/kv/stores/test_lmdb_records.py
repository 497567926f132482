"""Records in the shared file: their bound, their order, and what is left of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from services.engine.kv.stores import lmdb_records
from services.engine.kv.stores.lmdb_file import LmdbFile, OpenFile

RECORD = bytes(40_000)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[OpenFile]:
    held = LmdbFile(tmp_path, 2**23)
    with held.using() as opened:
        yield opened
    held.close()


def write(file: OpenFile, *numbers: int, bound: int = 2**22, expired: int = 0) -> None:
    for number in numbers:
        lmdb_records.write(file, key(number), RECORD, now=number, expired=expired, bound=bound)


def key(number: int) -> bytes:
    return b"layout.." + number.to_bytes(16, "big")


def kept(file: OpenFile) -> list[int]:
    stamps = lmdb_records.stamps(file, [key(number) for number in range(1000)])
    return [stamp for stamp in stamps if stamp is not None]


def test_a_record_and_its_stamp_are_read_together(file: OpenFile) -> None:
    assert lmdb_records.read(file, key(7)) is None
    write(file, 7)
    assert lmdb_records.read(file, key(7)) == (RECORD, 7)


def test_no_more_than_the_bound_is_in_use(file: OpenFile) -> None:
    for number in range(1, 100):
        write(file, number, bound=2**19)
        with file.env.begin() as txn:
            assert lmdb_records.used_bytes(file, txn) <= 2**19 + 2 * 4096
    assert kept(file) == list(range(100 - len(kept(file)), 100))


def test_a_record_larger_than_the_bound_has_the_file_for_itself(file: OpenFile) -> None:
    write(file, 1, 2)
    write(file, 3, bound=0)
    assert kept(file) == [3]


def test_what_has_had_its_time_goes_first(file: OpenFile) -> None:
    write(file, *range(1, 51))
    write(file, 60, expired=40)
    assert kept(file) == [*range(17, 51), 60]  # some at a time
    write(file, 61, 62, expired=40)
    assert kept(file) == [*range(40, 51), 60, 61, 62]


def test_room_is_made_of_what_is_oldest(file: OpenFile) -> None:
    write(file, *range(1, 21))
    lmdb_records.touch(file, [key(1)], now=100)
    lmdb_records.make_room(file, len(RECORD), bound=2**19)
    left = kept(file)
    assert left[0] == 100
    assert left[1:] == list(range(21 - len(left[1:]), 21))


def test_a_record_that_is_gone_is_not_touched_back(file: OpenFile) -> None:
    write(file, 1)
    lmdb_records.touch(file, [key(1), key(2)], now=50)
    assert kept(file) == [50]
    assert lmdb_records.read(file, key(2)) is None


def test_all_of_a_layout_are_dropped_and_no_others(file: OpenFile) -> None:
    number = 2 * lmdb_records.DROPPED_AT_ONCE
    for index in range(number):
        lmdb_records.write(file, b"another." + key(index), b"small", now=1, expired=0, bound=2**22)
    write(file, 1)
    assert lmdb_records.drop_all(file, b"another.") == number
    assert lmdb_records.drop_all(file, b"another.") == 0
    assert kept(file) == [1]
    with file.env.begin() as txn:
        for table in (file.records, file.order.used, file.order.order):
            assert txn.stat(table)["entries"] == 1
