"""Figures of a stage stand in its span under the names of the field."""

from __future__ import annotations

import time
from typing import Any, cast

from opentelemetry.trace import SpanKind, StatusCode

from services.shared.errors import WIRE
from services.shared.span_names import Attribute, is_failure, kind_of, named
from services.shared.telemetry import open_span, span
from services.shared.trace_context import TraceContext
from tests.kept_spans import keeping_spans, parent_of, span_id_of


def test_names_are_those_of_the_conventions_where_they_have_one() -> None:
    figures: dict[str, Attribute] = {
        "prompt_tokens": 7,
        "output_tokens": 3,
        "finish_reason": "stop_token,max_tokens",
        "preemptions": 0,
    }
    assert named(figures) == {
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ["stop_token", "max_tokens"],
        "tokenway.preemptions": 0,
    }


def test_who_serves_and_who_asks() -> None:
    assert kind_of("codec.request") is kind_of("kv.lend") is SpanKind.SERVER
    assert kind_of("router.attempt") is SpanKind.CLIENT
    assert kind_of("codec.encode") is SpanKind.INTERNAL


def test_an_error_is_a_failure_where_the_service_is_at_fault() -> None:
    assert not is_failure(None)
    assert is_failure("KeyError")
    for error, wire in WIRE.items():
        assert is_failure(error.__name__) is (wire.http_status >= 500)


def test_an_error_that_was_told_in_the_stream_makes_its_span_fail() -> None:
    figures: dict[str, Attribute] = {}
    with keeping_spans() as spans:
        with span("codec.request", None, figures):
            figures["error"] = "Unavailable"
        assert spans.one("codec.request").status.status_code is StatusCode.ERROR


def test_stages_are_told_when_they_are_over_with_their_own_times() -> None:
    with keeping_spans() as spans:
        before_ns = time.monotonic_ns()
        whole = open_span("engine.generate", None)
        whole.stage("engine.prefill", before_ns, before_ns + 3_000, {"prompt_tokens": 7})
        whole.stage("engine.decode", before_ns + 3_000, before_ns + 2_000, {})
        whole.end({})
        prefill, decode = spans.one("engine.prefill"), spans.one("engine.decode")
        parent = spans.one("engine.generate")
    assert parent_of(parent) is None
    assert {parent_of(prefill), parent_of(decode)} == {span_id_of(parent)}
    assert parent.start_time is not None
    assert prefill.start_time is not None
    assert 0 <= parent.start_time - prefill.start_time < time.monotonic_ns() - before_ns
    assert prefill.end_time == decode.start_time == decode.end_time == prefill.start_time + 3_000
    assert dict(cast("Any", prefill.attributes)) == {"gen_ai.usage.input_tokens": 7}


def test_a_trace_that_is_not_sampled_leaves_no_span_and_goes_on_as_it_is() -> None:
    caller = TraceContext("a" * 32, "b" * 16, sampled=False)
    with keeping_spans() as spans:
        opened = open_span("router.generate", caller)
        opened.stage("engine.prefill", 1, 2, {})
        opened.end({"end": "max_tokens"})
        assert spans.names == []
    assert opened.context.trace_id == caller.trace_id
    assert opened.context.traceparent.endswith("-00")
