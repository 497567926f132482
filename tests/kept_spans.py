"""Spans of this process, kept for a test instead of sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True)
class KeptSpans:
    """Those that have ended, in this order."""

    exporter: InMemorySpanExporter

    def all(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.all(name)
        return span

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.exporter.get_finished_spans()]


@contextmanager
def keeping_spans() -> Iterator[KeptSpans]:
    """All spans that are opened inside; a process has but one provider, which is put back."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with patch("opentelemetry.trace._TRACER_PROVIDER", provider):
        yield KeptSpans(exporter)


def span_id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id
