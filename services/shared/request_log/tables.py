"""The tables of the request log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from services.shared.plain_text import plain

VERSION = 1
"""Of the tables below. Whoever changes them counts up and tells in `schema` how old ones change."""

METADATA = MetaData()


class Plain(TypeDecorator[str]):
    """Text of so many characters at most, of which none is a control character."""

    impl = String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self._length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else plain(value, self._length)


def _text(name: str, length: int, *, nullable: bool = False, **options: Any) -> Column[str]:
    return Column(name, Plain(length), nullable=nullable, **options)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _time(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


SCHEMA_VERSION = Table(
    "tokenway_schema_version", METADATA, Column("version", Integer, primary_key=True)
)

REQUESTS = Table(
    "tokenway_requests",
    METADATA,
    _text("entry_id", 32, primary_key=True),
    _text("request_id", 128),
    _text("trace_id", 32),
    _time("began_us"),
    _time("duration_us"),
    _text("door", 16),
    _text("path", 100),
    _text("operation", 64, nullable=True),
    _text("model", 200, nullable=True),
    _text("tenant", 64, nullable=True),
    _text("key_id", 128, nullable=True),
    _text("outcome", 16),
    _text("error", 64, nullable=True),
    Column("stream", Boolean, nullable=False),
    _count("choices"),
    _count("prompt_tokens"),
    _count("cached_device_tokens"),
    _count("cached_host_tokens"),
    _count("cached_peer_tokens"),
    _count("cached_service_tokens"),
    _count("completion_tokens"),
    _time("encoded_us", nullable=True),
    _time("first_us", nullable=True),
    _text("routed", 200),
    _text("filter_rules", 200),
    Index("tokenway_requests_by_id", "request_id"),
    Index("tokenway_requests_by_time", "began_us"),
)

GENERATIONS = Table(
    "tokenway_generations",
    METADATA,
    Column("entry_id", ForeignKey(REQUESTS.c.entry_id), primary_key=True),
    Column("choice", Integer, primary_key=True, autoincrement=False),
    _time("fetch_us"),
    _time("queued_us"),
    _time("admission_us"),
    _time("prefill_us"),
    _time("decode_us"),
    _count("preemptions"),
    _count("continuations"),
    _text("cache_miss", 32, nullable=True),
)
