"""Spans: one for each stage of a request, none for a token.

Contexts are handed on by value, since one stream between services carries many requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from services.shared import logs
from services.shared.settings import TelemetrySettings
from services.shared.trace_context import TraceContext, current

Attribute = str | bool | int | float

SPAN_QUEUE = 16384
"""Spans that wait for the exporter; its default of 2,048 loses some in a burst of requests."""


def start(service: str, settings: TelemetrySettings) -> None:
    """Sets up JSON logs and spans for this process, once; `service` names it in both.

    Spans are sent in the background and at exit, never in a request's path.
    """
    logs.start(service, settings.log_level)
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: f"tokenway-{service}"}))
    if settings.otlp_endpoint is not None:
        exporter = OTLPSpanExporter(
            endpoint=settings.otlp_endpoint,
            insecure=not settings.otlp_endpoint.startswith("https://"),
        )
        provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=SPAN_QUEUE))
    trace.set_tracer_provider(provider)


class OpenSpan:
    """The span of a stage that begins in one call and ends in another.

    Attributes:
        context: the trace context for the next hop.
    """

    def __init__(self, opened: trace.Span, parent: TraceContext) -> None:
        self._span = opened
        known = opened.get_span_context()
        self.context = (
            TraceContext(
                trace.format_trace_id(known.trace_id),
                trace.format_span_id(known.span_id),
                sampled=known.trace_flags.sampled,
            )
            if known.is_valid
            else parent
        )

    def fail(self, why: str) -> None:
        self._span.set_status(trace.StatusCode.ERROR, why)

    def end(self, attributes: Mapping[str, Attribute]) -> None:
        """Ends the span with the stage's figures."""
        self._span.set_attributes(dict(attributes))
        self._span.end()


def open_span(name: str, parent: TraceContext | None) -> OpenSpan:
    """Opens a span that the caller ends; it does not become the current one."""
    parent = parent or TraceContext.new()
    tracer = trace.get_tracer("tokenway")
    return OpenSpan(tracer.start_span(name, context=_as_parent(parent)), parent)


@contextmanager
def span(
    name: str, parent: TraceContext | None, attributes: Mapping[str, Attribute] | None = None
) -> Iterator[TraceContext]:
    """Opens the span of one stage and gives the context for the next hop.

    Args:
        name: the stage, for example `codec.encode`.
        parent: where the stage belongs; None begins a trace.
        attributes: figures of the stage, no content. They are read when the span ends, so that
            the stage can add what it learns.
    """
    opened = open_span(name, parent)
    context = opened.context
    before = current.get()
    current.set(context)
    try:
        yield context
    except asyncio.CancelledError:
        opened.fail("cancelled")
        raise
    except Exception as error:
        opened.fail(type(error).__name__)
        raise
    finally:
        # Set, not reset: a generator may be closed by another task than the one that began it.
        current.set(before)
        opened.end(attributes or {})


def _as_parent(context: TraceContext) -> Context:
    remote = trace.SpanContext(
        trace_id=int(context.trace_id, 16),
        span_id=int(context.span_id, 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(context.sampled)),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(remote), Context())
