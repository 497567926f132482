"""A receiver of spans over OTLP, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class SpanCollector(rpc.TraceServiceServicer):
    """Keeps what comes; `service` names the sender of each span."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, Span]] = []

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002  # gRPC's
        for resource in request.resource_spans:
            named = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(named["service.name"], span) for span in scope.spans]
        return pb.ExportTraceServiceResponse()

    def all(self, trace_id: str, name: str | None = None) -> list[Span]:
        """Those of a trace, by the name of each where one is given."""
        return [
            span
            for _, span in list(self.spans)
            if span.trace_id.hex() == trace_id and name in {None, span.name}
        ]

    def ways(self, trace_id: str) -> list[str]:
        """The names from the root down to each span of a trace; one whose parent is lost fails."""
        by_id = {span.span_id: span for span in self.all(trace_id)}

        def way(span: Span) -> str:
            above = f"{way(by_id[span.parent_span_id])} " if span.parent_span_id else ""
            return above + span.name

        return sorted(map(way, by_id.values()))

    def of(self, trace_id: str) -> dict[str, tuple[str, Span]]:
        """Sender and span by name; a name that is there twice fails."""
        found = [(by, span) for by, span in self.spans if span.trace_id.hex() == trace_id]
        named = {span.name: (by, span) for by, span in found}
        assert len(named) == len(found), [span.name for _, span in found]
        return named


@contextmanager
def collecting() -> Iterator[tuple[SpanCollector, str]]:
    """The collector and its address."""
    collector = SpanCollector()
    server = grpc.server(ThreadPoolExecutor(2))
    rpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield collector, f"http://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()
