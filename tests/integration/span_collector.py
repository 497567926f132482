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
