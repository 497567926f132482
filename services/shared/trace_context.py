"""The W3C trace context: which trace a request belongs to, carried from hop to hop.

Source: https://www.w3.org/TR/trace-context/ level 1. `tracestate` is not carried.
"""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "traceparent"

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """One place in one trace.

    `trace_id` has 32 lower-case hexadecimal digits, `span_id` 16; neither is all zeros.
    """

    trace_id: str
    span_id: str
    sampled: bool = True

    @classmethod
    def new(cls) -> TraceContext:
        return cls(secrets.token_hex(16), secrets.token_hex(8))

    @classmethod
    def parse(cls, header: str | bytes | None) -> TraceContext:
        """The context in a `traceparent` header; a new trace when there is none or a bad one."""
        return cls.given(header) or cls.new()

    @classmethod
    def given(cls, header: str | bytes | None) -> TraceContext | None:
        """The context in a `traceparent` header; None when there is none or a bad one."""
        text = header.decode("latin-1") if isinstance(header, bytes) else header or ""
        match = _FORM.fullmatch(text.strip(" \t"))
        if match is None:
            return None
        version, trace_id, span_id, flags, rest = match.groups()
        if (
            version == "ff"
            or (version == "00" and rest)
            or not (int(trace_id, 16) and int(span_id, 16))
        ):
            return None
        return cls(trace_id, span_id, sampled=bool(int(flags, 16) & 1))

    @property
    def traceparent(self) -> str:
        """The header for the next hop."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"


current: ContextVar[TraceContext | None] = ContextVar("trace_context", default=None)


def call_metadata() -> tuple[tuple[str, str], ...]:
    """What a call to another service says of the trace that it belongs to."""
    context = current.get()
    return () if context is None else ((HEADER, context.traceparent),)
