"""Queues between threads that end with None."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")


def taken_from(line: SimpleQueue[Item | None], most: int | None = None) -> list[Item]:
    """Takes out what waits, at most so many; the end stays for the thread that reads."""
    taken: list[Item] = []
    with suppress(Empty):
        while most is None or len(taken) < most:
            item = line.get_nowait()
            if item is None:
                line.put(None)
                break
            taken.append(item)
    return taken
