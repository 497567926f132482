"""What is kept of a generation: one line and its spans, under the caller's trace, no content."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from opentelemetry.trace import StatusCode

from services.router.journal import SpanJournal
from services.router.relay.outcome import Destination, Outcome
from services.shared.digest import token_digest
from services.shared.trace_context import TraceContext
from tests.kept_spans import KeptSpans, keeping_spans, parent_of, span_id_of
from tests.recorder import generation

FINISHED = Outcome(end="max_tokens", replica="b:2", attempts=2, output_ids=[7])


@pytest.fixture
def spans() -> Iterator[KeptSpans]:
    with keeping_spans() as spans:
        yield spans


def test_a_generation_leaves_one_line_with_its_trace_and_figures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    caller = TraceContext.new()
    entry = SpanJournal().open(generation("x", prompt_ids=(5, 6)), caller.traceparent)
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


def test_each_attempt_is_a_span_that_is_linked_to_the_one_before(spans: KeptSpans) -> None:
    caller = TraceContext.new()
    entry = SpanJournal().open(generation("x"), caller.traceparent)
    entry.wait()
    entry.wait()
    first = entry.attempt(Destination(replica="a:1", routed="cached"))
    prefill = entry.attempt(Destination(replica="p:1", routed="cached", is_prefill=True))
    prefill.close("finished")
    first.close("failed: unavailable")
    second = entry.attempt(Destination(replica="b:2", routed="least load"))
    assert len({first.traceparent, prefill.traceparent, second.traceparent}) == 3
    second.close("finished")
    entry.close(FINISHED)
    whole = spans.one("router.generate")
    assert parent_of(whole) == int(caller.span_id, 16)
    inside = [
        *spans.all("router.queue"),
        *spans.all("router.prefill"),
        *spans.all("router.attempt"),
    ]
    assert len(inside) == 4
    assert {parent_of(span) for span in inside} == {span_id_of(whole)}
    lost, after = spans.all("router.attempt")
    assert [link.context.span_id for link in after.links] == [span_id_of(lost)]
    assert not lost.links
    assert dict(lost.attributes or {}) == {
        "tokenway.replica": "a:1",
        "tokenway.routed": "cached",
        "tokenway.end": "failed: unavailable",
        "error.type": "Unavailable",
    }
    assert TraceContext.parse(second.traceparent).span_id == f"{span_id_of(after):016x}"
    assert lost.status.status_code is StatusCode.ERROR
    assert after.status.status_code is whole.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("end", "error", "failed"),
    [
        ("max_tokens", None, False),
        ("cancelled: stop_text", None, False),
        ("cancelled: client_gone", "Cancelled", False),
        ("cancelled: deadline", "DeadlineExceeded", True),
        ("failed: deadline_exceeded", "DeadlineExceeded", True),
        ("failed: resource_exhausted", "Overloaded", False),
        ("failed: invalid_argument", "InvalidRequest", False),
        ("failed: internal", "Internal", True),
        ("failed: data_loss", "Internal", True),
    ],
)
def test_who_leaves_or_asks_what_cannot_be_is_told_from_what_fails(
    end: str, error: str | None, failed: bool, spans: KeptSpans
) -> None:
    entry = SpanJournal().open(generation("x"), "")
    entry.close(Outcome(end=end, error="text with words of the caller", attempts=1, output_ids=[]))
    span = spans.one("router.generate")
    assert parent_of(span) is None
    assert (span.attributes or {}).get("error.type") == error
    assert (span.status.status_code is StatusCode.ERROR) is failed
    assert "words of the caller" not in span.to_json()


def test_what_never_got_a_place_ends_its_wait(spans: KeptSpans) -> None:
    entry = SpanJournal().open(generation("x"), "")
    entry.wait()
    entry.close(FINISHED)
    assert spans.names == ["router.queue", "router.generate"]
