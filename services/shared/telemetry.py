"""Spans: one for each stage of a request, none for a token.

Contexts are handed on by value, since one stream between services carries many requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan

from services.shared import logs
from services.shared.errors import Cancelled
from services.shared.settings import TelemetrySettings
from services.shared.span_export import exporting
from services.shared.span_names import Attribute, is_failure, kind_of, named
from services.shared.trace_context import TraceContext, current


def start(service: str, settings: TelemetrySettings) -> None:
    """Sets up JSON logs and spans for this process, once; `service` names it in both.

    Without an endpoint no span is made; the caller's trace still is in the logs and goes on.

    Raises:
        BadConfig: the collector's certificates cannot be read.
    """
    logs.start(service, settings.log_level)
    if settings.otlp_endpoint is not None:
        trace.set_tracer_provider(exporting(service, settings.otlp_endpoint, settings))


class OpenSpan:
    """The span of a stage that begins in one call and ends in another.

    Attributes:
        context: the trace context for the next hop.
    """

    def __init__(self, opened: trace.Span, parent: TraceContext | None) -> None:
        self._span = opened
        self._opened_ns = time.monotonic_ns()
        known = opened.get_span_context()
        if known.is_valid:
            self.context = TraceContext(
                trace.format_trace_id(known.trace_id),
                trace.format_span_id(known.span_id),
                sampled=known.trace_flags.sampled,
            )
        else:
            self.context = parent or TraceContext.new()

    def stage(
        self, name: str, began_ns: int, ended_ns: int, figures: Mapping[str, Attribute]
    ) -> None:
        """A part of it that is over; times are nanoseconds on the monotonic clock."""
        if not isinstance(self._span, ReadableSpan) or self._span.start_time is None:
            return
        since_1970_ns = self._span.start_time - self._opened_ns
        began_ns, ended_ns = began_ns + since_1970_ns, ended_ns + since_1970_ns
        tracer = trace.get_tracer("tokenway")
        part = tracer.start_span(name, context=_as_parent(self.context), start_time=began_ns)
        part.set_attributes(named(figures))
        part.end(max(began_ns, ended_ns))

    def end(self, figures: Mapping[str, Attribute]) -> None:
        """Ends the span with the stage's figures, of which `error` is the class of an error."""
        if self._span.is_recording():
            error = figures.get("error")
            if is_failure(error):
                self._span.set_status(trace.StatusCode.ERROR, str(error))
            self._span.set_attributes(named(figures))
        self._span.end()


def open_span(
    name: str, parent: TraceContext | None, after: Sequence[TraceContext] = ()
) -> OpenSpan:
    """Opens a span that the caller ends; it does not become the current one.

    Args:
        name: the stage, for example `router.generate`.
        parent: where the stage belongs; None begins a trace.
        after: spans that it goes on from, which are linked.
    """
    tracer = trace.get_tracer("tokenway")
    above = Context() if parent is None else _as_parent(parent)
    links = [trace.Link(_span_context(context)) for context in after]
    opened = tracer.start_span(name, context=above, kind=kind_of(name), links=links)
    return OpenSpan(opened, parent)


@contextmanager
def span(
    name: str,
    parent: TraceContext | None,
    figures: MutableMapping[str, Attribute] | None = None,
) -> Iterator[TraceContext]:
    """Opens the span of one stage and gives the context for the next hop.

    Args:
        name: the stage, for example `codec.encode`.
        parent: where the stage belongs; None begins a trace.
        figures: of the stage, no content. They are read when the span ends, so that the stage can
            add what it learns; an error that leaves the block is added by its class.
    """
    opened = open_span(name, parent)
    figures = {} if figures is None else figures
    before = current.get()
    current.set(opened.context)
    try:
        yield opened.context
    except asyncio.CancelledError:
        figures["error"] = Cancelled.__name__
        raise
    except Exception as error:
        figures["error"] = type(error).__name__
        raise
    finally:
        # Set, not reset: a generator may be closed by another task than the one that began it.
        current.set(before)
        opened.end(figures)


def _as_parent(context: TraceContext) -> Context:
    return trace.set_span_in_context(trace.NonRecordingSpan(_span_context(context)), Context())


def _span_context(context: TraceContext) -> trace.SpanContext:
    return trace.SpanContext(
        trace_id=int(context.trace_id, 16),
        span_id=int(context.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(context.sampled)),
    )
