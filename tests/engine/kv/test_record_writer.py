"""Copies are written in turn, without what is there, and without what is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from services.engine.kv.figures import TierFigures
from services.engine.kv.record_rooms import RecordRooms
from services.engine.kv.record_writer import AT_A_TIME, Copy, RecordWriter
from services.engine.kv.records import Records
from services.engine.kv.store import StoreFailed
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Skip
from tests.engine.kv.shelf import Shelf, roomy
from tests.redis_server import PATIENCE_S, wait_for

COPIES = [Copy(b"%016d" % number, roomy(bytes([number]) * 8)) for number in range(40)]


@dataclass
class Bed:
    shelf: Shelf = field(default_factory=Shelf)
    switch: CacheSwitch = field(default_factory=CacheSwitch)
    figures: TierFigures = field(default_factory=TierFigures)
    done: list[bytes] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)

    def written(self, addresses: list[bytes], stored: list[bytes]) -> None:
        self.done += addresses
        self.stored += stored

    def wait_for(self, count: int) -> None:
        """Returns when so many copies are done."""
        wait_for(lambda: len(self.done) == count)


@contextmanager
def writer() -> Iterator[tuple[RecordWriter, Bed]]:
    bed = Bed()
    records = Records(bed.shelf, "layout")
    made = RecordWriter(records, RecordRooms(8), bed.switch, bed.figures, bed.written)
    try:
        yield made, bed
    finally:
        bed.shelf.passing.set()
        made.close()
        assert made.join(PATIENCE_S)


def addresses(copies: list[Copy]) -> list[bytes]:
    return [copy.address for copy in copies]


def test_copies_are_written_in_turn_and_asked_for_together() -> None:
    with writer() as (made, bed):
        bed.shelf.passing.clear()
        for copy in COPIES:
            made.put(copy)
        bed.shelf.passing.set()
        bed.wait_for(len(COPIES))
        assert bed.stored == bed.done == addresses(COPIES)
        assert list(bed.shelf.records) == addresses(COPIES)
        assert bed.shelf.asked <= 2 + len(COPIES) // AT_A_TIME
        assert bed.figures.written_blocks == len(COPIES)


def test_what_is_there_counts_as_stored() -> None:
    with writer() as (made, bed):
        bed.shelf.records[COPIES[0].address] = b"anything"
        made.put(COPIES[0])
        bed.wait_for(1)
        assert bed.stored == addresses(COPIES[:1])
        assert bed.figures.skips == {Skip.PRESENT: 1}


def test_failures_are_logged_once_until_a_write_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    with writer() as (made, bed):
        for at in range(4):
            bed.shelf.failure = None if at == 2 else StoreFailed("full")
            made.put(COPIES[at])
            bed.wait_for(at + 1)
        assert bed.stored == addresses(COPIES[2:3])
        assert bed.figures.skips == {Skip.FAILED: 3}
    assert caplog.text.count("the service cache takes no blocks: full") == 2


def test_what_waits_can_be_dropped_while_the_store_hangs() -> None:
    with writer() as (made, bed):
        bed.shelf.passing.clear()
        made.put(COPIES[0])
        wait_for(lambda: bed.shelf.asked)
        for copy in COPIES[1:4]:
            made.put(copy)
        made.drop(Skip.OFF)
        assert bed.done == addresses(COPIES[1:4])
        assert bed.figures.skips == {Skip.OFF: 3}
        assert not made.quiet(0)


def test_off_no_call_begins() -> None:
    with writer() as (made, bed):
        bed.switch.set(enabled=False)
        assert made.quiet(PATIENCE_S)
        made.put(COPIES[0])
        bed.wait_for(1)
        assert bed.shelf.asked == bed.shelf.put_calls == 0
        assert bed.figures.skips == {Skip.OFF: 1}
