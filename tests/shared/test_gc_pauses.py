"""Pauses of the garbage collector."""

from __future__ import annotations

import gc
from itertools import count

from services.shared.gc_pauses import GcPauses


def test_each_collection_counts_once_for_its_generation_while_it_is_measured() -> None:
    ticks = count()
    pauses = GcPauses(now=lambda: float(next(ticks)))
    gc.collect(0)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with pauses.measured():
            gc.collect(0)
            gc.collect(2)
            gc.collect(2)
        gc.collect(2)
    finally:
        if was_enabled:
            gc.enable()
    assert [seconds.count for seconds in pauses.seconds] == [1, 0, 2]
    assert [seconds.total for seconds in pauses.seconds] == [1.0, 0.0, 2.0]


def test_a_collection_that_began_before_is_not_counted() -> None:
    pauses = GcPauses()
    pauses.hear("stop", {"generation": 1})
    assert not any(seconds.count for seconds in pauses.seconds)
