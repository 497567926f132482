"""Rows for tests, and a log that is kept while a test runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from services.shared.request_log.database import open_database, open_for_reading
from services.shared.request_log.reader import RequestReader
from services.shared.request_log.request_log import Bounds, RequestLog
from services.shared.request_log.row import GenerationRow, RequestRow, new_entry_id
from services.shared.request_log.settings import RequestLogSettings
from tests.waiting import PATIENCE_S

DAY_US = 86_400_000_000
BEGAN_US = 20_000 * DAY_US
FOR_EVER_S = 1e10

GENERATION = GenerationRow(
    choice=0,
    fetch_us=1,
    queued_us=2,
    admission_us=1,
    prefill_us=3,
    decode_us=4,
    preemptions=5,
    continuations=6,
    cache_miss="evicted",
)


def a_row(**fields: Any) -> RequestRow:
    began_us = fields.get("began_us", BEGAN_US)
    values: dict[str, Any] = {
        "entry_id": new_entry_id(began_us),
        "request_id": "r1",
        "trace_id": "0" * 31 + "1",
        "began_us": began_us,
        "duration_us": 2_000_000,
        "door": "http",
        "path": "/v1/chat/completions",
        "operation": "chat_completions",
        "model": "small",
        "tenant": "acme",
        "key_id": "tw_ab12cd34",
        "outcome": "finished",
        "error": None,
        "stream": True,
        "choices": 1,
        "prompt_tokens": 100,
        "cached_device_tokens": 16,
        "cached_host_tokens": 8,
        "cached_peer_tokens": 4,
        "cached_service_tokens": 2,
        "completion_tokens": 10,
        "encoded_us": 1000,
        "first_us": 50_000,
        "routed": "least tokens",
        "filter_rules": "",
        "generations": (GENERATION,),
    }
    return RequestRow(**values | fields)


@contextmanager
def kept(settings: RequestLogSettings, **bounds: Any) -> Iterator[RequestLog]:
    """A log that runs inside the block."""
    bounds = {"keep_s": FOR_EVER_S} | bounds
    log = RequestLog(partial(open_database, settings), Bounds(**bounds))
    log.start()
    try:
        yield log
    finally:
        log.close(PATIENCE_S)


def write(settings: RequestLogSettings, *rows: RequestRow) -> None:
    """Without rows only the tables are made."""
    with closing(open_database(settings)) as database:
        if rows:
            database.write(rows)


@contextmanager
def reading(settings: RequestLogSettings, tenant: str | None = None) -> Iterator[RequestReader]:
    with closing(RequestReader(open_for_reading(settings), tenant)) as reader:
        yield reader


def found(settings: RequestLogSettings, request_id: str = "r1") -> list[RequestRow]:
    with reading(settings) as reader:
        return reader.find(request_id)
