"""The request log in PostgreSQL, where that is on this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import column, delete, func, insert, select, table, update

from services.shared.request_log import database, request_log
from services.shared.request_log.database import open_database, open_for_reading
from services.shared.request_log.drop import Drop
from services.shared.request_log.reader import Grouping
from services.shared.request_log.request_log import Bounds, RequestLog
from services.shared.request_log.settings import RequestLogSettings
from services.shared.request_log.tables import GENERATIONS, REQUESTS, SCHEMA_VERSION, VERSION
from tests.postgres_server import PASSWORD, PostgresServer, postgres_server, programs
from tests.redis_server import wait_for
from tests.shared.request_log.rows import (
    BEGAN_US,
    DAY_US,
    FOR_EVER_S,
    a_row,
    found,
    kept,
    reading,
    write,
)
from tests.waiting import PATIENCE_S

PROGRAMS = programs()
pytestmark = pytest.mark.skipif(PROGRAMS is None, reason="no PostgreSQL on this machine")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    assert PROGRAMS is not None
    with postgres_server(PROGRAMS) as server:
        yield server


@pytest.fixture
def settings(server: PostgresServer, tmp_path: Path) -> Iterator[RequestLogSettings]:
    password_file = tmp_path / "password"
    password_file.write_text(f"{PASSWORD}\n")
    settings = RequestLogSettings(url=server.url, password_file=password_file)
    yield settings
    with closing(open_database(settings)) as opened, opened._engine.begin() as connection:
        for table in (GENERATIONS, REQUESTS):
            connection.execute(delete(table))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.02)
    monkeypatch.setattr(request_log, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(request_log, "LONGEST_PAUSE_S", 0.02)
    monkeypatch.setattr(request_log, "GATHER_S", 0.01)


def test_rows_are_written_found_and_summed(settings: RequestLogSettings) -> None:
    rows = [a_row(model="a\x00\n\ud800"), a_row(began_us=BEGAN_US + DAY_US, tenant="other")]
    with kept(settings) as log:
        for row in rows:
            log.add(row)
    later, first = found(settings)
    assert later == rows[1]
    assert first.model == r"a\x00\n\ud800"
    with reading(settings, "other") as reader:
        assert reader.find("r1") == [later]
        (one,) = reader.usage(Grouping.DAY)
    assert (one.group, one.prompt_tokens, one.cached_tokens) == ("20001", 100, 30)


def test_a_server_that_was_away_gets_the_rows_once(
    settings: RequestLogSettings, server: PostgresServer
) -> None:
    with kept(settings, queue=10) as log:
        log.add(a_row())
        wait_for(lambda: log.written == 1)
        server.stop()
        try:
            log.add(a_row())
            wait_for(lambda: log._trouble)
            for _ in range(11):
                log.add(a_row())
        finally:
            server.start()
        wait_for(lambda: log.written == 11)
    assert log.dropped[Drop.UNAVAILABLE] == 2
    assert len(found(settings)) == 11


def test_a_row_is_there_once_however_often_it_is_written(settings: RequestLogSettings) -> None:
    row = a_row()
    write(settings, row)
    write(settings, row, a_row(request_id="r2"))
    assert found(settings) == [row]
    assert len(found(settings, "r2")) == 1


def test_a_row_that_is_refused_takes_no_other_with_it(settings: RequestLogSettings) -> None:
    with kept(settings) as log:
        for number in range(20):
            log.add(a_row(prompt_tokens=2**40 if number == 7 else 1))
    assert log.dropped[Drop.REFUSED] == 1
    assert len(found(settings)) == 19


def test_old_rows_are_deleted(
    settings: RequestLogSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_log, "SWEEP_ROWS", 7)
    new = a_row(began_us=BEGAN_US * 10)
    write(settings, *(a_row() for _ in range(20)), new)
    with kept(settings, keep_s=86_400):
        wait_for(lambda: len(found(settings)) == 1)
    assert found(settings) == [new]


def test_tables_that_another_holds_are_waited_for(settings: RequestLogSettings) -> None:
    write(settings)
    held = open_for_reading(settings)
    with kept(settings) as log:
        with held.connect() as other:
            other.execute(insert(REQUESTS), [database._values(a_row())])
            other.exec_driver_sql("LOCK TABLE tokenway_requests IN ACCESS EXCLUSIVE MODE")
            log.add(a_row())
            wait_for(lambda: log._trouble is Drop.LOCKED)
        wait_for(lambda: log.written)
    held.dispose()
    assert len(found(settings)) == 1


def test_a_newer_schema_and_a_wrong_password_are_told_and_mended(
    settings: RequestLogSettings,
) -> None:
    assert settings.password_file is not None
    settings.password_file.write_text("wrong")
    with kept(settings) as log:
        log.add(a_row())
        wait_for(lambda: log._trouble is Drop.UNAVAILABLE)
        settings.password_file.write_text(PASSWORD)
        wait_for(lambda: log.written == 1)
    _set_version(settings, VERSION, VERSION + 1)
    try:
        with kept(settings) as log:
            log.add(a_row())
            wait_for(lambda: log._trouble is Drop.SCHEMA)
    finally:
        _set_version(settings, VERSION + 1, VERSION)
    assert log.dropped[Drop.SCHEMA] == 1


def test_a_server_that_stands_still_holds_up_nobody(settings: RequestLogSettings) -> None:
    log = RequestLog(partial(open_database, settings), Bounds(keep_s=FOR_EVER_S, queue=10))
    log.start()
    log.add(a_row())
    wait_for(lambda: log.written == 1)
    (pid,) = _backends(settings)
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(12):
            log.add(a_row())
        log.close(0.05)
        assert sum(log.dropped.values()) == 12
    finally:
        os.kill(pid, signal.SIGCONT)
    log._thread.join(PATIENCE_S)
    assert not log._thread.is_alive()


def _backends(settings: RequestLogSettings) -> list[int]:
    """Processes of the server that serve a log."""
    activity = table("pg_stat_activity", column("pid"), column("application_name"))
    engine = open_for_reading(settings)
    with engine.connect() as connection:
        ours = connection.execute(select(func.pg_backend_pid())).scalar_one()
        named = activity.c.application_name == "tokenway"
        found = connection.scalars(select(activity.c.pid).where(named, activity.c.pid != ours))
        pids = list(found)
    engine.dispose()
    return pids


def _set_version(settings: RequestLogSettings, before: int, after: int) -> None:
    engine = database._engine(database._with_password(settings))
    of_it = update(SCHEMA_VERSION).where(SCHEMA_VERSION.c.version == before)
    with engine.begin() as connection:
        connection.execute(of_it.values(version=after))
    engine.dispose()
