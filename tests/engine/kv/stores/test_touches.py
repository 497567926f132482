"""Notes of use are written beside the reads that made them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from threading import Event

from services.engine.kv.stores.touches import AT_ONCE, Touches
from tests.redis_server import wait_for


def test_nobody_waits_for_a_writer_and_notes_are_written_together() -> None:
    free, begun = Event(), Event()
    noted: list[set[bytes]] = []

    def note(keys: Collection[bytes]) -> None:
        begun.set()
        free.wait()
        noted.append(set(keys))

    touches = Touches(note)
    touches.add(b"first")
    begun.wait()
    keys = [number.to_bytes(2, "big") for number in range(AT_ONCE + 10)]
    for key in (*keys, *keys):
        touches.add(key)
    free.set()
    touches.close()
    assert [len(part) for part in noted] == [1, AT_ONCE, 10]
    assert set().union(*noted) == {b"first", *keys}


def test_what_was_noted_can_be_noted_again() -> None:
    noted: list[bytes] = []
    touches = Touches(noted.extend)

    def is_noted(times: int) -> bool:
        return noted == [b"key"] * times and not touches._waiting

    for times in (1, 2):
        touches.add(b"key")
        wait_for(partial(is_noted, times))
    touches.close()
