"""Queues that end with None are emptied without their end."""

from __future__ import annotations

from queue import SimpleQueue

from services.engine.kv.line import taken_from


def line(*items: int | None) -> SimpleQueue[int | None]:
    made: SimpleQueue[int | None] = SimpleQueue()
    for item in items:
        made.put(item)
    return made


def test_what_waits_is_taken_in_order() -> None:
    waiting = line(1, 2, 3)
    assert taken_from(waiting, 2) == [1, 2]
    assert taken_from(waiting) == [3]
    assert taken_from(waiting) == []


def test_the_end_stays() -> None:
    waiting = line(1, None)
    assert taken_from(waiting) == [1]
    assert taken_from(waiting) == []
    assert waiting.get_nowait() is None
