"""Settings of the request log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from services.shared.bounds import within

_FORMS = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
POSTGRESQL = "postgresql+psycopg"
SQLITE = "sqlite"


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestLogSettings:
    """Where a row of figures is kept for each request.

    Args:
        url: of the database; None keeps none.
        password_file: has the password of the database, where it does not stand in the URL.
        keep_days: after so many days rows are deleted.
    """

    url: str | None = field(default=None, repr=False)
    password_file: Path | None = None
    keep_days: int = 30

    def __post_init__(self) -> None:
        within("keep_days", self.keep_days, 1, 36_500)
        if self.url is not None:
            database_url(self.url)
        if self.password_file is not None and self.driver != POSTGRESQL:
            raise ValueError("password_file must not be set without a url of PostgreSQL")

    @property
    def driver(self) -> str | None:
        return None if self.url is None else database_url(self.url).drivername


def database_url(text: str) -> URL:
    """Raises ValueError that begins with `url` and does not tell it, for it may hold a password."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise ValueError(f"url must be {_FORMS}") from error
    if url.drivername == "postgresql":
        url = url.set(drivername=POSTGRESQL)
    if url.drivername not in {SQLITE, POSTGRESQL}:
        raise ValueError(f"url must be {_FORMS}, got one of {url.drivername!r}")
    if url.drivername == SQLITE and (url.host or url.query or _is_no_file(url.database)):
        raise ValueError(f"url must be {_FORMS}, got no file")
    if not url.database:
        raise ValueError(f"url must be {_FORMS}, got no database")
    return url


def _is_no_file(database: str | None) -> bool:
    return not database or database == ":memory:" or database.startswith("file:")
