"""Trace contexts follow the W3C's rules, and a bad header begins a new trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.shared.trace_context import TraceContext

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


def test_a_header_is_read_and_written() -> None:
    for flags, sampled in (("00", False), ("01", True), ("ff", True)):
        context = TraceContext.parse(f"00-{TRACE}-{SPAN}-{flags}")
        assert context == TraceContext(TRACE, SPAN, sampled=sampled)
    assert TraceContext(TRACE, SPAN).traceparent == f"00-{TRACE}-{SPAN}-01"
    assert TraceContext.parse(f"00-{TRACE}-{SPAN}-01".encode()).trace_id == TRACE


def test_a_later_version_may_say_more() -> None:
    assert TraceContext.parse(f"01-{TRACE}-{SPAN}-01-more").trace_id == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "garbage",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0",
        b"\xff\xfe",
    ],
)
def test_a_bad_header_begins_a_new_trace(header: str | bytes | None) -> None:
    first, second = TraceContext.parse(header), TraceContext.parse(header)
    assert first.trace_id not in {TRACE, second.trace_id}


@given(st.text() | st.binary() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-01"))
def test_whatever_comes_the_next_hop_gets_a_header_that_reads_back(header: str | bytes) -> None:
    context = TraceContext.parse(header)
    assert TraceContext.parse(context.traceparent) == context
