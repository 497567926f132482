"""Refused access is told at once, counted when it goes on, and bounded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.shared.access.denials import OTHERS, PERIOD_S, Denials, Kind, Why
from tests.shared.audit.noted import events_in, noting


class ManualClock:
    """Time stands until the test moves it."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def call_later(self, delay: float, callback: Callable[[], None], /) -> None:
        assert delay == PERIOD_S
        self.due.append(callback)

    def move(self) -> None:
        ripe, self.due = self.due, []
        for callback in ripe:
            callback()


def why(address: str = "10.0.0.1", cause: str = "unknown key", key: str | None = None) -> Why:
    return Why(address=address, cause=cause, key_id=key)


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["fields"] for record in caplog.records]


def test_the_first_is_told_and_others_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    denials = Denials(clock)
    (name,) = {denials.note(why(key="tw_a")) for _ in range(100)}
    line = {"address": "10.0.0.1", "cause": "unknown key", "request_id": name, "key": "tw_a"}
    assert told(caplog) == [line]
    clock.move()
    assert told(caplog) == [line, {**line, "refused": 99}]
    assert denials.note(why(key="tw_a")) != name
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_who_comes_once_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    denials = Denials(clock)
    denials.note(why())
    clock.move()
    denials.close()
    assert len(told(caplog)) == 1
    assert clock.due == []


def test_many_addresses_fill_neither_memory_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    denials = Denials(clock, size=10)
    for number in range(1000):
        denials.note(why(f"10.0.0.{number}"))
    assert len(clock.due) <= 11
    denials.close()
    lines = told(caplog)
    assert len(lines) == 12
    assert sum(line.get("refused", 1) for line in lines if line["address"] == OTHERS) == 990
    clock.move()
    assert len(told(caplog)) == 12


def test_the_audit_hears_the_same_as_the_log(tmp_path: Path) -> None:
    with noting(tmp_path / "audit.jsonl") as audit:
        denials = Denials(ManualClock(), audit)
        (name,) = {denials.note(why(key="tw_a")) for _ in range(3)}
        denials.close()
    once, again = events_in(tmp_path / "audit.jsonl")
    assert (once["who"], once["address"], once["what"]) == ("key:tw_a", "10.0.0.1", "unknown key")
    assert "times" not in once
    assert (again["times"], again["request_id"]) == (2, name)


def test_causes_are_counted_under_names_of_a_closed_set() -> None:
    denials = Denials(ManualClock())
    causes = {
        "no key": Kind.NO_KEY,
        "unknown key": Kind.UNKNOWN_KEY,
        "expired key": Kind.EXPIRED_KEY,
        "revoked key": Kind.REVOKED_KEY,
        "expired token": Kind.EXPIRED_TOKEN,
        "token of another issuer": Kind.WRONG_TOKEN,
        "malformed token": Kind.WRONG_TOKEN,
        "address": Kind.ADDRESS,
        "two keys in one request": Kind.OTHER,
    }
    for cause in causes:
        denials.note(why(cause=cause))
    assert denials.counts == {kind: list(causes.values()).count(kind) for kind in Kind}
