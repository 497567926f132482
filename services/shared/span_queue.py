"""Ended spans on their way to a collector. Nobody ever waits for it."""

from __future__ import annotations

import logging
from collections import deque
from threading import Event, Thread

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

LIMIT = 16_384
BATCH = 512
DELAY_S = 1.0
"""How long spans gather: a message to the collector costs as much as ten more spans in it."""

CLOSE_S = 2.0
LAST_S = 0.5

_log = logging.getLogger(__name__)


class SpanQueue(SpanProcessor):
    """Keeps at most `limit` spans, and drops what comes then.

    Args:
        exporter: called on a thread of its own; it comes back within its own time limit.
        limit: spans that wait.

    Attributes:
        dropped: spans that no collector will get.
    """

    def __init__(self, exporter: SpanExporter, limit: int = LIMIT) -> None:
        self.dropped = 0
        self._exporter = exporter
        self._limit = limit
        self._waiting: deque[ReadableSpan] = deque()
        self._wake = Event()
        self._is_closed = False
        self._is_losing = False
        self._thread = Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def on_end(self, span: ReadableSpan) -> None:
        """For any thread."""
        context = span.get_span_context()
        if context is None or not context.trace_flags.sampled:
            return
        if self._is_closed or len(self._waiting) >= self._limit:
            self._drop(1)
            return
        self._waiting.append(span)
        if len(self._waiting) >= BATCH:
            self._wake.set()

    def shutdown(self) -> None:
        """Sends what waits, for at most CLOSE_S seconds; what is on its way then is dropped."""
        self._is_closed = True
        self._wake.set()
        self._thread.join(CLOSE_S)
        self._exporter.shutdown()
        self._thread.join(LAST_S)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # the SDK's name
        """Nobody waits for a collector: tells only whether nothing is left."""
        self._wake.set()
        return not self._waiting

    def _run(self) -> None:
        while not self._is_closed:
            self._wake.wait(DELAY_S)
            self._wake.clear()
            self._send_all()
        self._send_all()

    def _send_all(self) -> None:
        while self._waiting:
            self._send([self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))])

    def _send(self, spans: list[ReadableSpan]) -> None:
        if self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            self._drop(len(spans))
        elif self._is_losing:
            self._is_losing = False
            _log.info("spans are sent again", extra={"fields": {"dropped_spans": self.dropped}})

    def _drop(self, spans: int) -> None:
        """Told once, until the collector takes some again."""
        self.dropped += spans
        if not self._is_losing:
            self._is_losing = True
            _log.warning("the collector does not take all spans; some are dropped")
