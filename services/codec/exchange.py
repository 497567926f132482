"""One request from its arrival to its last byte: its names, its span, its line in the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, time

from services.codec.listeners import Listeners
from services.codec.request_figures import Door
from services.codec.request_record import Account, Outcome, RequestRecord
from services.shared.access.caller import ANYBODY, Caller
from services.shared.errors import Cancelled, ServiceError
from services.shared.span_names import Attribute
from services.shared.telemetry import span
from services.shared.trace_context import TraceContext

_OPERATIONS = {"completions": "text_completion"}
"""What OpenTelemetry calls what a protocol asks for; the others all ask for chat."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Names of a request and whose it is; `figures` are what log and span tell, never content.

    Attributes:
        began: when, by the monotonic clock.
        account: what it comes to.
    """

    request_id: str
    trace: TraceContext
    caller: Caller = ANYBODY
    figures: dict[str, Attribute] = field(default_factory=dict)
    began: float = field(default_factory=monotonic)
    account: Account = field(default_factory=Account)

    def elapsed_s(self) -> float:
        return monotonic() - self.began


@contextmanager
def exchanging(
    door: Door,
    request_id: str,
    parent: TraceContext | None,
    caller: Caller,
    listeners: Listeners,
) -> Iterator[Exchange]:
    """Opens the span of a request; at the end writes its line and tells the listeners.

    Args:
        door: where it came.
        request_id: as the caller is told.
        parent: the caller's span; None begins a trace.
        caller: whose request it is.
        listeners: hear of it.
    """
    figures: dict[str, Attribute] = {"door": door, "request_id": request_id}
    if caller.tenant is not None and caller.key_id is not None:
        figures |= {"tenant": caller.tenant, "key": caller.key_id}
    began_at = time()
    with span("codec.request", parent, figures) as trace:
        exchange = Exchange(request_id=request_id, trace=trace, caller=caller, figures=figures)
        listeners.begin(door, exchange.account)
        try:
            yield exchange
        except asyncio.CancelledError:
            figures["error"] = Cancelled.__name__
            raise
        except ServiceError as error:
            note_error(exchange, error)
            raise
        finally:
            figures |= _asked(exchange.account)
            figures["duration_ms"] = round(1000 * exchange.elapsed_s(), 1)
            _log.info("request", extra={"trace": trace, "fields": dict(figures)})
            listeners.end(_record(exchange, door, began_at))


def note_error(exchange: Exchange, error: ServiceError) -> None:
    """Tells log and span the kind of error and the field, not the text, which quotes the caller."""
    exchange.figures["error"] = type(error).__name__
    if error.field is not None:
        exchange.figures["field"] = error.field[:100]


def _asked(account: Account) -> dict[str, Attribute]:
    """What was asked for, as far as the body was read."""
    asked: dict[str, Attribute] = {}
    if account.model is not None:
        asked["model"] = account.model
    if account.operation is not None:
        asked["operation"] = _OPERATIONS.get(account.operation, "chat")
    return asked


def _record(exchange: Exchange, door: Door, began_at: float) -> RequestRecord:
    error = exchange.figures.get("error")
    return RequestRecord(
        request_id=exchange.request_id,
        trace_id=exchange.trace.trace_id,
        door=door,
        path=str(exchange.figures.get("path", "")),
        tenant=exchange.caller.tenant,
        key_id=exchange.caller.key_id,
        began_at=began_at,
        duration_s=exchange.elapsed_s(),
        outcome=_outcome(error, is_submitted=exchange.account.is_submitted),
        error=None if error is None else str(error),
        account=exchange.account,
    )


def _outcome(error: Attribute | None, *, is_submitted: bool) -> Outcome:
    if error is None:
        return Outcome.FINISHED
    if error == Cancelled.__name__:
        return Outcome.CANCELLED
    return Outcome.FAILED if is_submitted else Outcome.REFUSED
