"""Rows reach the database behind the requests, and what keeps them from it is told and counted."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from services.shared.request_log import database, request_log
from services.shared.request_log.drop import Drop
from services.shared.request_log.request_log import RequestLog
from services.shared.request_log.settings import RequestLogSettings
from services.shared.request_log.tables import VERSION
from tests.redis_server import wait_for
from tests.shared.request_log.rows import BEGAN_US, a_row, found, kept, write

CANNOT, AGAIN = "the request log cannot be written", "the request log is written again"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bounded by a time is over soon."""
    monkeypatch.setattr(database, "PATIENCE_S", 0.02)
    monkeypatch.setattr(request_log, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(request_log, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(request_log, "GATHER_S", 0.01)


def told(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(line)["fields"] for line in caplog.records if line.getMessage() == message]


def causes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [fields["cause"] for fields in told(caplog, CANNOT)]


def lost(log: RequestLog) -> dict[Drop, int]:
    return {cause: count for cause, count in log.dropped.items() if count}


def test_rows_are_written_while_it_runs(settings: RequestLogSettings, file: Path) -> None:
    with kept(settings) as log:
        row = a_row()
        log.add(row)
        wait_for(lambda: log.written)
        assert found(settings) == [row]
        assert log.queued == 0
        for name in (file, file.with_name("requests.db-wal")):
            assert name.stat().st_mode & 0o777 == 0o600
    assert lost(log) == {}


def test_what_waits_is_written_at_the_end(
    settings: RequestLogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "GATHER_S", 3600)
    with kept(settings, batch=64) as log:
        for _ in range(1000):
            log.add(a_row())
    assert (log.written, log.queued, lost(log)) == (1000, 0, {})
    log.add(a_row())
    assert lost(log) == {Drop.STOPPED: 1}


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_rows_wait_for_a_locked_database_as_long_as_there_is_room(
    settings: RequestLogSettings, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(settings)
    with kept(settings, queue=10) as log:
        with locked(file):
            log.add(a_row())
            wait_for(lambda: causes(caplog))
            for _ in range(14):
                log.add(a_row())
            assert lost(log) == {Drop.LOCKED: 5}
            assert log.queued == 10
        wait_for(lambda: log.written == 10)
        wait_for(lambda: told(caplog, AGAIN))
        log.add(a_row())
        wait_for(lambda: log.written == 11)
    assert causes(caplog) == ["locked"]
    assert told(caplog, AGAIN) == [{"written": 10, "dropped": 5}]
    assert lost(log) == {Drop.LOCKED: 5}


def test_the_end_does_not_wait_for_a_locked_database(
    settings: RequestLogSettings, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(settings)
    with locked(file), kept(settings) as log:
        for _ in range(3):
            log.add(a_row())
    assert lost(log) == {Drop.LOCKED: 3}
    assert told(caplog, "rows of the request log were lost") == [{"locked": 3}]


def test_a_full_queue_is_told_once(
    settings: RequestLogSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with kept(settings, queue=10) as log:
        log.add(a_row())
        wait_for(lambda: log.written)
        monkeypatch.setattr(request_log, "GATHER_S", 3600)
        for _ in range(100):
            log.add(a_row())
        assert log.queued <= 10
    assert causes(caplog) == ["queue_full"]
    assert log.written + log.dropped[Drop.QUEUE_FULL] == 101
    assert told(caplog, AGAIN)


def make_newer(file: Path) -> None:
    write(RequestLogSettings(url=f"sqlite:///{file}"))
    with closing(sqlite3.connect(file)) as other:
        other.execute("UPDATE tokenway_schema_version SET version = ?", (VERSION + 1,))
        other.commit()


def make_corrupt(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database" * 1000)


def make_unopenable(file: Path) -> None:
    file.mkdir(parents=True)


@pytest.mark.parametrize(
    ("spoil", "cause"),
    [
        (make_newer, Drop.SCHEMA),
        (make_corrupt, Drop.CORRUPT),
        (make_unopenable, Drop.UNAVAILABLE),
    ],
)
def test_a_database_that_cannot_be_used_is_told_and_one_in_its_place_is_used(
    settings: RequestLogSettings,
    file: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: Any,
    cause: Drop,
) -> None:
    spoil(file)
    before = file.read_bytes() if file.is_file() else None
    with kept(settings, queue=10) as log:
        wait_for(lambda: causes(caplog))
        for _ in range(12):
            log.add(a_row())
        assert lost(log) == {cause: 2}
        if before is not None:
            assert file.read_bytes() == before
        file.rename(file.with_name("aside"))
        wait_for(lambda: log.written == 10)
    assert causes(caplog) == [cause]
    assert len(found(settings)) == 10


def test_a_file_that_is_taken_away_is_made_anew(settings: RequestLogSettings, file: Path) -> None:
    with kept(settings) as log:
        log.add(a_row())
        wait_for(lambda: log.written == 1)
        file.unlink()
        log.add(a_row(request_id="r2"))
        wait_for(lambda: log.written == 2)
    assert len(found(settings, "r2")) == 1


@pytest.mark.parametrize("field", [{"prompt_tokens": 2**70}, {"model": 7}])
def test_a_row_that_is_refused_takes_no_other_with_it(
    settings: RequestLogSettings, caplog: pytest.LogCaptureFixture, field: dict[str, Any]
) -> None:
    with kept(settings) as log:
        for number in range(50):
            log.add(a_row(**field) if number == 17 else a_row())
    assert lost(log) == {Drop.REFUSED: 1}
    assert len(found(settings)) == 49
    assert len(told(caplog, "the request log does not take a row")) == 1
    assert causes(caplog) == []


def test_old_rows_are_deleted_a_few_at_a_time(
    settings: RequestLogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "SWEEP_ROWS", 7)
    write(settings, *(a_row() for _ in range(20)))
    new = a_row(began_us=BEGAN_US * 10)
    write(settings, new)
    with kept(settings, keep_s=86_400):
        wait_for(lambda: len(found(settings)) == 1)
    assert found(settings) == [new]


FULL = """
import json, logging, resource, sys
from pathlib import Path
from services.shared.request_log import database, request_log
from services.shared.request_log.drop import Drop
from services.shared.request_log.settings import RequestLogSettings
from tests.redis_server import wait_for
from tests.shared.request_log.rows import a_row, kept

request_log.FIRST_PAUSE_S = request_log.LONGEST_PAUSE_S = request_log.GATHER_S = 0.01
file = Path(sys.argv[1])
with kept(RequestLogSettings(url=f"sqlite:///{file}"), queue=100, batch=10) as log:
    log.add(a_row())
    wait_for(lambda: log.written)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = file.with_name(file.name + "-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4096, hard))
    for _ in range(1000):
        log.add(a_row())
    wait_for(lambda: log._trouble is Drop.DISK)
    for _ in range(101):
        log.add(a_row())
    told = log.dropped["disk"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    wait_for(lambda: not log.queued)
print(json.dumps({"on disk": told, "written": log.written, "lost": sum(log.dropped.values())}))
"""


def test_a_full_disk_is_told_and_room_is_used_again(file: Path) -> None:
    file.parent.mkdir()
    ended = subprocess.run(  # noqa: S603 a program of ours
        [sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, check=True
    )
    counted = json.loads(ended.stdout)
    assert counted["on disk"] >= 1
    assert counted["written"] + counted["lost"] == 1102
    assert len(found(RequestLogSettings(url=f"sqlite:///{file}"))) == min(100, counted["written"])


def test_a_bug_in_the_thread_is_told_and_rows_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Any:
        raise LookupError("a bug")

    log = RequestLog(broken, request_log.Bounds(keep_s=1, queue=2))
    log.start()
    wait_for(lambda: [line for line in caplog.records if line.levelno == logging.ERROR])
    for _ in range(3):
        log.add(a_row())
    log.close(1)
    assert lost(log) == {Drop.STOPPED: 3}
