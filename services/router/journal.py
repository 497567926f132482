"""The record of each generation: a span, and one line in the log when it ends."""

from __future__ import annotations

import logging

from services.router.relay.outcome import Outcome
from services.shared.digest import token_digest
from services.shared.stream.generation import Generation
from services.shared.telemetry import OpenSpan, open_span
from services.shared.trace_context import TraceContext

_log = logging.getLogger(__name__)


class SpanEntry:
    """A generation that is on its way."""

    def __init__(self, generation: Generation, span: OpenSpan) -> None:
        self.traceparent = span.context.traceparent
        self._generation = generation
        self._span = span

    def close(self, outcome: Outcome) -> None:
        prompt_ids = self._generation.prompt_ids
        figures: dict[str, str | int] = {
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
        if outcome.error is not None:
            figures["error"] = outcome.error
            self._span.fail(outcome.error)
        self._span.end(figures)
        fields = {"fields": figures, "trace": self._span.context}
        _log.info("generation ended", extra=fields)


class SpanJournal:
    """Writes to the process's tracer and log."""

    def open(self, generation: Generation, traceparent: str) -> SpanEntry:
        return SpanEntry(generation, open_span("router.generate", TraceContext.parse(traceparent)))
