"""The tables in a database: made when they are missing, refused when they are of a later time."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, func, insert, inspect, select

from services.shared.request_log.tables import METADATA, SCHEMA_VERSION, VERSION

_LOCK = 7_365_219_401
"""One process at a time makes tables; PostgreSQL knows the lock by this number."""


class WrongSchema(Exception):
    """The database is of another version of Tokenway, or of something else."""


def prepare(engine: Engine) -> None:
    """Makes what is missing. Raises WrongSchema when the tables are newer than we know."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        SCHEMA_VERSION.create(connection, checkfirst=True)
        found = _version(connection)
        if found is None:
            connection.execute(insert(SCHEMA_VERSION), [{"version": VERSION}])
        _check(found or VERSION)
        METADATA.create_all(connection)


def check(engine: Engine) -> None:
    """Raises WrongSchema when the tables are not there, or newer than we know."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(SCHEMA_VERSION.name):
            raise WrongSchema("it has no tables of a request log")
        _check(_version(connection) or VERSION)


def _version(connection: Connection) -> int | None:
    newest: int | None = connection.scalar(select(func.max(SCHEMA_VERSION.c.version)))
    return newest


def _check(found: int) -> None:
    if found > VERSION:
        raise WrongSchema(f"its tables have version {found}, and {VERSION} is the newest known")
