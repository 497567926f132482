"""A collector that is slow, hangs or is away costs spans and nothing else."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from threading import Event

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from services.shared.settings import TelemetrySettings
from services.shared.span_queue import BATCH, SpanQueue
from tests.waiting import until

LIMIT = 2 * BATCH

CHILD = """
import sys
from services.shared.settings import TelemetrySettings
from services.shared.telemetry import span, start

start("codec", TelemetrySettings(otlp_endpoint=sys.argv[1]))
for _ in range(200):
    with span("codec.request", None):
        pass
print("done")
"""


class Collector(SpanExporter):
    """Takes batches while it is open; `answer` is what it says to them."""

    def __init__(self) -> None:
        self.answer = SpanExportResult.SUCCESS
        self.spans: list[str] = []
        self.open = Event()
        self.open.set()
        self.asked = Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked.set()
        self.open.wait()
        if self.answer is SpanExportResult.SUCCESS:
            self.spans += [span.name for span in spans]
        return self.answer

    def shutdown(self) -> None:
        self.open.set()


@contextmanager
def queue_of(collector: Collector) -> Iterator[tuple[SpanQueue, TracerProvider]]:
    provider = TracerProvider(shutdown_on_exit=False)
    queue = SpanQueue(collector, limit=LIMIT)
    provider.add_span_processor(queue)
    try:
        yield queue, provider
    finally:
        provider.shutdown()


def end_spans(provider: TracerProvider, count: int) -> None:
    tracer = provider.get_tracer("test")
    for number in range(count):
        tracer.start_span(str(number)).end()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_what_has_no_room_is_counted_and_told_once_and_the_oldest_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    collector = Collector()
    collector.open.clear()
    with queue_of(collector) as (queue, provider):
        end_spans(provider, 1)
        await until(collector.asked.is_set)
        end_spans(provider, LIMIT + 9)
        assert queue.dropped == 9
        assert lines(caplog) == ["the collector does not take all spans; some are dropped"]
        collector.open.set()
        await until(lambda: len(collector.spans) == 1 + LIMIT)
        await until(lambda: lines(caplog)[1:] == ["spans are sent again"])
        end_spans(provider, 1)
        await until(lambda: len(collector.spans) == 1 + LIMIT + 1)
    assert queue.dropped == 9


async def test_what_a_collector_does_not_take_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector = Collector()
    collector.answer = SpanExportResult.FAILURE
    with queue_of(collector) as (queue, provider):
        end_spans(provider, 3)
        await until(lambda: queue.dropped == 3)
        end_spans(provider, 5)
        await until(lambda: queue.dropped == 8)
        assert len(lines(caplog)) == 1


def test_what_waits_at_the_end_is_sent_then() -> None:
    collector = Collector()
    with queue_of(collector) as (queue, provider):
        end_spans(provider, 7)
    assert (len(collector.spans), queue.dropped) == (7, 0)
    end_spans(provider, 1)
    assert len(collector.spans) == 7


@pytest.mark.parametrize("listens", [True, False])
def test_a_process_does_its_work_and_ends_though_no_collector_answers(listens: bool) -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()  # connections are made, and nobody ever reads
        command = [sys.executable, "-c", CHILD, f"http://127.0.0.1:{silent.getsockname()[1]}"]
        ended = subprocess.run(  # noqa: S603 our own program
            command, check=True, timeout=60, capture_output=True, text=True
        )
    assert ended.stdout == "done\n"
    told = [line for line in ended.stderr.splitlines() if line]
    assert len(told) == 1, told
    assert "some are dropped" in told[0]


@pytest.mark.parametrize("header", ["novalue", "Upper=1", "a=\n", "=x", "a b=c"])
def test_a_header_that_cannot_be_is_refused_without_its_value(header: str) -> None:
    with pytest.raises(ValueError, match=re.escape("otlp_headers[1] must be name=value")) as bad:
        TelemetrySettings(otlp_headers=("authorization=Bearer x=", header))
    assert header not in str(bad.value)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_is_between_none_and_all(ratio: float) -> None:
    with pytest.raises(ValueError, match="sample_ratio must be between 0 and 1"):
        TelemetrySettings(sample_ratio=ratio)
