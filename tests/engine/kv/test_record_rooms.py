"""Rooms for records are used again, up to a bound."""

from __future__ import annotations

from services.engine.kv.record import HEADER_BYTES
from services.engine.kv.record_rooms import KEPT_BYTES, RecordRooms


def test_a_room_holds_a_record_and_can_be_written() -> None:
    room = RecordRooms(100).take()
    assert len(room) == HEADER_BYTES + 100
    room[HEADER_BYTES:] = bytes(100)


def test_what_is_given_back_is_given_again() -> None:
    rooms = RecordRooms(100)
    first, second = rooms.take(), rooms.take()
    assert first.obj is not second.obj
    rooms.give_back(first)
    assert rooms.take() is first


def test_what_is_kept_is_bounded() -> None:
    rooms = RecordRooms(KEPT_BYTES // 3)
    taken = [rooms.take() for _ in range(4)]
    for room in taken:
        rooms.give_back(room)
    again = [rooms.take() for _ in range(4)]
    assert sum(any(room is one for one in taken) for room in again) == 2
