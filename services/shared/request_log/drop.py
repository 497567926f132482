"""Why rows of the request log are dropped, and what an error of a database says of that."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from services.shared.request_log.schema import WrongSchema

FAULTS = (SQLAlchemyError, WrongSchema, OSError, OverflowError, UnicodeError)
"""What a database, its driver and its file may raise."""


class Drop(StrEnum):
    """What kept a row from the database."""

    QUEUE_FULL = "queue_full"  # it takes fewer rows than requests come
    LOCKED = "locked"  # another holds it for too long
    DISK = "disk"  # its disk is full or broken
    CORRUPT = "corrupt"  # the file is damaged, or no database
    SCHEMA = "schema"  # its tables are not ours
    UNAVAILABLE = "unavailable"  # it cannot be reached or opened
    REFUSED = "refused"  # it does not take this row
    STOPPED = "stopped"  # the process ended before


_SQLITE = {
    5: Drop.LOCKED,
    6: Drop.LOCKED,
    10: Drop.DISK,
    13: Drop.DISK,
    11: Drop.CORRUPT,
    26: Drop.CORRUPT,
    18: Drop.REFUSED,
    19: Drop.REFUSED,
    20: Drop.REFUSED,
}
"""By primary result code: https://www.sqlite.org/rescode.html."""

_POSTGRESQL = {
    "22": Drop.REFUSED,
    "23": Drop.REFUSED,
    "53100": Drop.DISK,
    "58030": Drop.DISK,
    "55P03": Drop.LOCKED,
    "57014": Drop.LOCKED,
}
"""By SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html."""

_NO_SPACE = 28


def cause_of(error: Exception) -> Drop:
    """Args: error: one of FAULTS."""
    match error:
        case WrongSchema():
            return Drop.SCHEMA
        case OSError():
            return Drop.DISK if error.errno == _NO_SPACE else Drop.UNAVAILABLE
        case OverflowError() | UnicodeError():
            return Drop.REFUSED
        case DBAPIError():
            return _cause_of_driver(error.orig)
        case StatementError():  # a value that is none of its column
            return Drop.REFUSED
        case _:
            return Drop.UNAVAILABLE


def _cause_of_driver(error: object) -> Drop:
    number = getattr(error, "sqlite_errorcode", None)
    if number is not None:
        return _SQLITE.get(number & 0xFF, Drop.UNAVAILABLE)
    state = getattr(error, "sqlstate", None) or ""
    return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2]) or Drop.UNAVAILABLE


def words_of(error: Exception) -> str:
    """For the log: what the driver says, without statement and values."""
    return str(error.orig if isinstance(error, StatementError) else error)
