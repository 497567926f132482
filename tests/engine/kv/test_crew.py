"""Threads for calls that may hang: bounded, in turn, and no hindrance to an end."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from threading import Event, get_ident

import pytest

from services.engine.kv.crew import Crew

PATIENCE_S = 30


def test_calls_are_made_elsewhere_and_answered() -> None:
    crew = Crew("test", 2)
    assert crew.call(get_ident).result(PATIENCE_S) != get_ident()
    crew.close()
    assert crew.join(PATIENCE_S)


def test_what_a_call_raises_is_raised_to_who_asked() -> None:
    crew = Crew("test", 1)
    with pytest.raises(ZeroDivisionError):
        crew.call(lambda: 1 // 0).result(PATIENCE_S)
    assert crew.call(lambda: 1).result(PATIENCE_S) == 1
    crew.close()


def test_what_waits_behind_calls_that_hang_can_be_taken_back() -> None:
    crew, gate, begun = Crew("test", 1), Event(), Event()

    def hang() -> None:
        begun.set()
        gate.wait()

    hanging = crew.call(hang)
    begun.wait(PATIENCE_S)
    called: list[int] = []
    waiting = crew.call(lambda: called.append(1))
    assert not hanging.cancel()
    assert waiting.cancel()
    gate.set()
    crew.call(lambda: None).result(PATIENCE_S)
    assert called == []
    crew.close()


def test_a_close_ends_what_waits_and_tells_of_what_hangs() -> None:
    crew, gate, begun = Crew("test", 1), Event(), Event()

    def hang() -> None:
        begun.set()
        gate.wait()

    crew.call(hang)
    begun.wait(PATIENCE_S)
    waiting: Future[None] = crew.call(lambda: None)
    crew.close()
    assert waiting.cancelled()
    assert not crew.join(0)
    with pytest.raises(CancelledError):
        crew.call(lambda: None).result(PATIENCE_S)
    gate.set()
    assert crew.join(PATIENCE_S)
