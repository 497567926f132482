"""Garbage is collected between steps, when much has gathered or nothing runs, and counted."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from services.engine import collector as module
from services.engine.collector import Collector


@pytest.fixture
def collector() -> Iterator[Collector]:
    """One that has taken over; collection is given back after the test."""
    taken = Collector()
    taken.take_over()
    yield taken
    gc.enable()
    gc.unfreeze()


def test_python_collects_where_nobody_has_taken_over() -> None:
    collector = Collector()
    collector.after_step()
    collector.when_idle()
    assert collector.pauses == 0


def test_nothing_collects_by_itself(collector: Collector) -> None:
    assert not gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert collector.pauses == 0


def test_an_idle_moment_collects_once_after_each_busy_time(collector: Collector) -> None:
    collector.when_idle()
    collector.when_idle()
    assert collector.pauses == 1
    collector.after_step()
    collector.when_idle()
    assert collector.pauses == 2
    assert collector.paused_us > 0


def test_a_busy_engine_collects_only_what_has_gathered(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()
    collector.after_step()
    assert collector.pauses == 0
    monkeypatch.setattr(module, "YOUNG_OBJECTS", 100)
    kept = [[number] for number in range(500)]
    collector.after_step()
    assert collector.pauses == 1
    assert len(kept) == 500
