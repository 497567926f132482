"""The record of each generation: spans, and one line in the log when it ends."""

from __future__ import annotations

import logging

from services.router.relay.outcome import Destination, Outcome
from services.shared.digest import token_digest
from services.shared.span_names import Attribute, error_in
from services.shared.stream.generation import Generation
from services.shared.telemetry import OpenSpan, open_span
from services.shared.trace_context import TraceContext

_log = logging.getLogger(__name__)


class SpanAttempt:
    """A generation's way to one replica."""

    def __init__(self, to: Destination, span: OpenSpan) -> None:
        self.traceparent = span.context.traceparent
        self.context = span.context
        self._to = to
        self._span = span

    def close(self, end: str) -> None:
        figures: dict[str, Attribute] = {
            "replica": self._to.replica,
            "routed": self._to.routed,
            "end": end,
        }
        self._span.end(figures | error_in(end))


class SpanEntry:
    """A generation that is on its way."""

    def __init__(self, generation: Generation, span: OpenSpan) -> None:
        self._generation = generation
        self._span = span
        self._queue: OpenSpan | None = None
        self._attempts: list[TraceContext] = []

    def wait(self) -> None:
        if self._queue is None:
            self._queue = open_span("router.queue", self._span.context)

    def attempt(self, to: Destination) -> SpanAttempt:
        """Linked to the attempt before, from where it goes on."""
        self._waited()
        if to.is_prefill:
            return SpanAttempt(to, open_span("router.prefill", self._span.context))
        opened = open_span("router.attempt", self._span.context, after=self._attempts[-1:])
        attempt = SpanAttempt(to, opened)
        self._attempts.append(attempt.context)
        return attempt

    def close(self, outcome: Outcome) -> None:
        self._waited()
        prompt_ids = self._generation.prompt_ids
        figures: dict[str, Attribute] = {
            "request_id": self._generation.request_id,
            "end": outcome.end,
            "replica": outcome.replica,
            "routed": outcome.routed,
            "attempts": outcome.attempts,
            "prompt_tokens": len(prompt_ids),
            "prompt_digest": token_digest(prompt_ids),
            "output_tokens": len(outcome.output_ids),
            "output_digest": token_digest(outcome.output_ids),
        }
        if outcome.setback is not None:
            figures["setback"] = outcome.setback
        self._span.end(figures | error_in(outcome.end))
        if outcome.error is not None:
            figures["error"] = outcome.error
        fields = {"fields": figures, "trace": self._span.context}
        _log.info("generation ended", extra=fields)

    def _waited(self) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.end({})


class SpanJournal:
    """Writes to the process's tracer and log."""

    def open(self, generation: Generation, traceparent: str) -> SpanEntry:
        return SpanEntry(generation, open_span("router.generate", TraceContext.given(traceparent)))
