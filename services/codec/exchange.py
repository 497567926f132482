"""One request from its arrival to its last byte: its names, its span, its line in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from services.shared.errors import ServiceError
from services.shared.telemetry import Attribute, span
from services.shared.trace_context import TraceContext

_GOOD_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A request's names; `figures` are what log and span tell of it, never content."""

    request_id: str
    trace: TraceContext
    figures: dict[str, Attribute] = field(default_factory=dict)


def request_id_from(given: str | None) -> str:
    """The caller's name for the request where it is short and plain, or a new one."""
    if given is not None and _GOOD_ID.fullmatch(given):
        return given
    return f"req_{secrets.token_hex(12)}"


@contextmanager
def exchanging(door: str, request_id: str, parent: TraceContext) -> Iterator[Exchange]:
    """Opens the span of a request; at the end writes its line."""
    figures: dict[str, Attribute] = {"door": door, "request_id": request_id}
    began = monotonic()
    with span("codec.request", parent, figures) as trace:
        exchange = Exchange(request_id=request_id, trace=trace, figures=figures)
        try:
            yield exchange
        except asyncio.CancelledError:
            figures["error"] = "Cancelled"
            raise
        except ServiceError as error:
            note_error(exchange, error)
            raise
        finally:
            figures["duration_ms"] = round(1000 * (monotonic() - began), 1)
            _log.info("request", extra={"trace": trace, "fields": dict(figures)})


def note_error(exchange: Exchange, error: ServiceError) -> None:
    """Tells log and span the kind of error and the field, not the text, which quotes the caller."""
    exchange.figures["error"] = type(error).__name__
    if error.field is not None:
        exchange.figures["field"] = error.field[:100]
