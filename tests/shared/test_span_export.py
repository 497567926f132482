"""Spans reach a collector over TLS with the headers that it wants, and no other collector."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc

from services.shared.config import BadConfig
from services.shared.settings import TelemetrySettings
from services.shared.span_export import ExportedSpans, exporting
from tests.certificates import Authority
from tests.waiting import until


class Collector(rpc.TraceServiceServicer):
    """Keeps names of spans, and what came with them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.metadata: dict[str, Any] = {}

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802  # gRPC's
        self.metadata = dict(context.invocation_metadata())
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.names += [span.name for span in scope.spans]
        return pb.ExportTraceServiceResponse()


@contextmanager
def collecting(authority: Authority) -> Iterator[tuple[Collector, str]]:
    identity, collector = authority.issue("collector"), Collector()
    pair = (identity.key_file.read_bytes(), identity.cert_file.read_bytes())
    server = grpc.server(ThreadPoolExecutor(2))
    rpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        yield collector, f"https://127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@contextmanager
def spans_to(endpoint: str, **settings: Any) -> Iterator[ExportedSpans]:
    spans = exporting("codec", endpoint, TelemetrySettings(**settings))
    try:
        yield spans
    finally:
        spans.shutdown()


def end_span(spans: ExportedSpans, name: str) -> None:
    spans.get_tracer("test").start_span(name).end()


async def test_a_collector_of_the_authority_gets_spans_with_the_headers(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with (
        collecting(authority) as (collector, endpoint),
        spans_to(
            endpoint, otlp_ca_file=authority.ca_file, otlp_headers=("x-api-key=a=b",)
        ) as spans,
    ):
        end_span(spans, "codec.request")
        await until(lambda: collector.names)
        assert collector.names == ["codec.request"]
        assert collector.metadata["x-api-key"] == "a=b"
        assert spans.queue.dropped == 0


async def test_a_collector_of_another_authority_gets_nothing(tmp_path: Path) -> None:
    with (
        collecting(Authority(tmp_path)) as (collector, endpoint),
        spans_to(endpoint, otlp_ca_file=Authority(tmp_path, "other").ca_file) as spans,
    ):
        end_span(spans, "codec.request")
    assert spans.queue.dropped == 1
    assert collector.names == []


def test_of_the_traces_that_begin_here_a_share_is_sampled() -> None:
    with spans_to("http://127.0.0.1:1", sample_ratio=0.25) as spans:
        opened = [spans.get_tracer("test").start_span("x") for _ in range(400)]
        sampled = sum(span.get_span_context().trace_flags.sampled for span in opened)
    assert 50 < sampled < 150


def test_whoever_asks_gets_the_same_tracer() -> None:
    with spans_to("http://127.0.0.1:1") as spans:
        assert spans.get_tracer("one") is spans.get_tracer("another")


def test_certificates_that_cannot_be_read_stop_the_start() -> None:
    missing = TelemetrySettings(otlp_ca_file=Path("/nowhere/ca.pem"))
    with pytest.raises(BadConfig, match="otlp_ca_file cannot be read"):
        exporting("codec", "https://127.0.0.1:1", missing)
