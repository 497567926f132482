"""What is kept of a generation: one line, under the caller's trace, without content."""

from __future__ import annotations

import logging

import pytest

from services.router.journal import SpanJournal
from services.router.relay.outcome import Outcome
from services.shared.digest import token_digest
from services.shared.trace_context import TraceContext
from tests.recorder import generation


def test_a_generation_leaves_one_line_with_its_trace_and_figures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    caller = TraceContext.new()
    entry = SpanJournal().open(generation("x", prompt_ids=(5, 6)), caller.traceparent)
    assert TraceContext.parse(entry.traceparent).trace_id == caller.trace_id
    entry.close(
        Outcome(
            end="failed: unavailable",
            error="lost",
            replica="a:1",
            routed="why",
            attempts=2,
            setback="the session ended",
            output_ids=[7],
        )
    )
    (record,) = caplog.records
    assert vars(record)["fields"] == {
        "request_id": "x",
        "end": "failed: unavailable",
        "error": "lost",
        "replica": "a:1",
        "routed": "why",
        "attempts": 2,
        "setback": "the session ended",
        "prompt_tokens": 2,
        "prompt_digest": token_digest([5, 6]),
        "output_tokens": 1,
        "output_digest": token_digest([7]),
    }
    assert vars(record)["trace"].trace_id == caller.trace_id
