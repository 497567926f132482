"""A database that rows are written to or read from: a file of SQLite, or PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, delete, event, select
from sqlalchemy.dialects import postgresql, sqlite

from services.shared.request_log.row import RequestRow
from services.shared.request_log.schema import check, prepare
from services.shared.request_log.settings import SQLITE, RequestLogSettings, database_url
from services.shared.request_log.tables import GENERATIONS, REQUESTS

PATIENCE_S = 2.0
"""How long a statement waits for others who hold the database."""

STATEMENT_MS = 10_000
CONNECT_S = 5
MODE = 0o600

_INSERT: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
_COLUMNS = tuple(column.name for column in REQUESTS.columns)
_OF_GENERATION = tuple(column.name for column in GENERATIONS.columns if column.name != "entry_id")


class Database:
    """Open for one thread. Each method raises one of `drop.FAULTS`.

    Args:
        engine: see `opened`.
        file: of SQLite.
    """

    def __init__(self, engine: Engine, file: Path | None) -> None:
        self._engine = engine
        self._file = file
        self._inode = _inode(file)

    def write(self, rows: Sequence[RequestRow]) -> None:
        """All of them or none. Those that are there already are left as they are."""
        insert = _INSERT[self._engine.dialect.name]
        generations = [values for row in rows for values in _generations(row)]
        with self._engine.begin() as connection:
            connection.execute(insert(REQUESTS).on_conflict_do_nothing(), list(map(_values, rows)))
            if generations:
                connection.execute(insert(GENERATIONS).on_conflict_do_nothing(), generations)

    def delete_before(self, began_us: int, count: int) -> int:
        """Deletes the oldest rows of requests that began before; tells how many it were.

        Args:
            began_us: microseconds since 1970.
            count: at most.
        """
        old = select(REQUESTS.c.entry_id).where(REQUESTS.c.began_us < began_us)
        with self._engine.begin() as connection:
            names = connection.scalars(old.order_by(REQUESTS.c.began_us).limit(count)).all()
            for table in (GENERATIONS, REQUESTS):
                connection.execute(delete(table).where(table.c.entry_id.in_(names)))
        return len(names)

    @property
    def is_gone(self) -> bool:
        """Whether the file is another one than was opened, or none."""
        return _inode(self._file) != self._inode

    def close(self) -> None:
        self._engine.dispose()


def open_database(settings: RequestLogSettings) -> Database:
    """For writing; makes file and tables where they are missing. Raises one of `drop.FAULTS`."""
    url = _with_password(settings)
    file = None
    if url.drivername == SQLITE:
        file = Path(url.database or "")
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
    engine = _engine(url)
    try:
        prepare(engine)
        return Database(engine, file)
    except BaseException:
        engine.dispose()
        raise


def open_for_reading(settings: RequestLogSettings) -> Engine:
    """Raises one of `drop.FAULTS`, also for a file that is not there."""
    url = _with_password(settings)
    if url.drivername == SQLITE:
        file = Path(url.database or "")
        file.open("rb").close()
    engine = _engine(url, reads=True)
    try:
        check(engine)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _with_password(settings: RequestLogSettings) -> URL:
    url = database_url(settings.url or "")
    if settings.password_file is None:
        return url
    return url.set(password=settings.password_file.read_text("utf-8").rstrip("\r\n"))


def _engine(url: URL, *, reads: bool = False) -> Engine:
    """One connection, with bounds for all that it does."""
    if url.drivername != SQLITE:
        options = f"-c statement_timeout={STATEMENT_MS} -c lock_timeout={int(1000 * PATIENCE_S)}"
        arguments: dict[str, Any] = {
            "connect_timeout": CONNECT_S,
            "tcp_user_timeout": STATEMENT_MS,
            "options": options,
            "application_name": "tokenway",
        }
        return create_engine(url, connect_args=arguments, pool_size=1, max_overflow=0)
    arguments = {"timeout": PATIENCE_S, "isolation_level": None, "check_same_thread": False}
    engine = create_engine(url, connect_args=arguments, pool_size=1, max_overflow=0)
    event.listen(engine, "connect", _read_only if reads else _written_ahead)
    event.listen(engine, "begin", _begin if reads else _begin_to_write)
    return engine


def _written_ahead(connection: Any, _: object) -> None:
    """Readers do not wait for us, nor we for them; a crash of the process loses nothing."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")


def _read_only(connection: Any, _: object) -> None:
    connection.execute("PRAGMA query_only = ON")


def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_to_write(connection: Any) -> None:
    """At once: one who reads first and writes then may be told that it is too late."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _values(row: RequestRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _COLUMNS}


def _generations(row: RequestRow) -> list[dict[str, Any]]:
    return [
        {"entry_id": row.entry_id, **{name: getattr(one, name) for name in _OF_GENERATION}}
        for one in row.generations
    ]


def _inode(file: Path | None) -> int | None:
    try:
        return None if file is None else file.stat().st_ino
    except FileNotFoundError:
        return None
