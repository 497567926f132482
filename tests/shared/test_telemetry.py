"""Spans reach a real OTLP receiver as one trace; logs are JSON lines that name the trace."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from services.shared import logs
from services.shared.settings import LogLevel
from services.shared.telemetry import span
from services.shared.trace_context import TraceContext, current

CHILD = """
import asyncio, sys
from services.shared.settings import TelemetrySettings
from services.shared.telemetry import span, start
from services.shared.trace_context import TraceContext

start("codec", TelemetrySettings(otlp_endpoint=sys.argv[1]))
parent = TraceContext.parse(sys.argv[2])
learned = {}
with span("codec.request", parent, learned) as outer:
    learned["prompt_tokens"] = 7
    with span("codec.encode", outer):
        pass
try:
    with span("codec.decode", parent):
        raise KeyError("secret")
except KeyError:
    pass
try:
    with span("codec.stream", parent):
        raise asyncio.CancelledError
except asyncio.CancelledError:
    pass
"""


@dataclass
class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector that keeps what it gets."""

    spans: dict[str, Any] = field(default_factory=dict)
    services: set[str] = field(default_factory=set)

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 gRPC's name
        for resource in request.resource_spans:
            self.services |= {
                item.value.string_value
                for item in resource.resource.attributes
                if item.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        return trace_service_pb2.ExportTraceServiceResponse()


@dataclass(frozen=True)
class Collector:
    receiver: Receiver
    address: str


@pytest.fixture
def collector() -> Iterator[Collector]:
    receiver = Receiver()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    register: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server  # has no types
    register(receiver, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Collector(receiver, f"127.0.0.1:{port}")
    server.stop(None).wait()


def test_spans_arrive_as_one_trace_with_what_their_stages_learned(collector: Collector) -> None:
    parent = TraceContext.new()
    child = [sys.executable, "-c", CHILD, f"http://{collector.address}", parent.traceparent]
    subprocess.run(child, check=True, timeout=60)  # noqa: S603 our own program
    spans = collector.receiver.spans
    assert collector.receiver.services == {"tokenway-codec"}
    assert {span.trace_id.hex() for span in spans.values()} == {parent.trace_id}
    request = spans["codec.request"]
    assert request.parent_span_id.hex() == parent.span_id
    assert [(item.key, item.value.int_value) for item in request.attributes] == [
        ("gen_ai.usage.input_tokens", 7)
    ]
    assert spans["codec.encode"].parent_span_id == request.span_id
    failed = spans["codec.decode"].status
    assert (failed.code, failed.message) == (2, "KeyError")
    assert "secret" not in str(spans)
    left = spans["codec.stream"]
    assert left.status.code == 0
    assert [(item.key, item.value.string_value) for item in left.attributes] == [
        ("error.type", "Cancelled")
    ]


def test_without_a_set_up_a_span_hands_its_parent_on() -> None:
    parent = TraceContext.new()
    with span("router.route", parent) as context:
        assert context == current.get() == parent
    assert current.get() is None
    with span("router.route", None) as context:
        assert int(context.trace_id, 16)


async def test_a_span_in_a_generator_that_another_task_closes_ends_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def stage() -> Any:
        with span("codec.stream", None):
            yield 1

    stream = stage()
    assert await asyncio.create_task(stream.__anext__()) == 1
    await asyncio.create_task(stream.aclose())
    assert not caplog.records


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    logs.start("engine", LogLevel.INFO, stream)
    yield stream
    root.handlers[:] = before[0]
    root.setLevel(before[1])


def test_each_log_is_one_json_line_with_its_trace_and_fields(lines: io.StringIO) -> None:
    log = logging.getLogger("services.engine.loop")
    given, running = TraceContext.new(), TraceContext.new()
    log.debug("not told")
    log.info("step\ntook %d", 3, extra={"fields": {"prompt_tokens": 7, "level": "mine"}})
    log.info("about one request", extra={"trace": given})
    with span("engine.generate", running):
        log.info("inside a span")
    try:
        json.loads("{}")["x"]
    except KeyError:
        log.exception("crashed")
    first, second, third, fourth = map(json.loads, lines.getvalue().splitlines())
    assert first | {"ts": ""} == {
        "ts": "",
        "level": "info",
        "service": "engine",
        "message": "step\ntook 3",
        "prompt_tokens": 7,
    }
    assert first["ts"].endswith("Z")
    assert (second["trace_id"], second["span_id"]) == (given.trace_id, given.span_id)
    assert third["trace_id"] == running.trace_id
    assert fourth["level"] == "error"
    assert "KeyError" in fourth["exception"]
