"""One request from its arrival to its last byte: its names, its span, its line in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from services.shared.access.caller import ANYBODY, Caller
from services.shared.errors import ServiceError
from services.shared.telemetry import Attribute, span
from services.shared.trace_context import TraceContext

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Names of a request and whose it is; `figures` are what log and span tell, never content."""

    request_id: str
    trace: TraceContext
    caller: Caller = ANYBODY
    figures: dict[str, Attribute] = field(default_factory=dict)


@contextmanager
def exchanging(
    door: str, request_id: str, parent: TraceContext, caller: Caller
) -> Iterator[Exchange]:
    """Opens the span of a request; at the end writes its line."""
    figures: dict[str, Attribute] = {"door": door, "request_id": request_id}
    if caller.tenant is not None and caller.key_id is not None:
        figures |= {"tenant": caller.tenant, "key": caller.key_id}
    began = monotonic()
    with span("codec.request", parent, figures) as trace:
        exchange = Exchange(request_id=request_id, trace=trace, caller=caller, figures=figures)
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
