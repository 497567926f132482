"""What the figures of a stage are called in its span, and which errors make it a failure.

Names after OpenTelemetry's semantic conventions (GenAI, HTTP, errors) where they have one, from
https://opentelemetry.io/docs/specs/semconv/gen-ai/; all others begin with `tokenway.`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opentelemetry.trace import SpanKind

from services.shared.errors import WIRE, Cancelled, Code, DeadlineExceeded, error_of

Attribute = str | bool | int | float

_STANDARD = {
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
    "error": "error.type",
    "model": "gen_ai.request.model",
    "operation": "gen_ai.operation.name",
    "output_tokens": "gen_ai.usage.output_tokens",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "status": "http.response.status_code",
}
_KINDS = {
    "codec.request": SpanKind.SERVER,
    "codec.decode": SpanKind.CLIENT,
    "router.generate": SpanKind.SERVER,
    "router.attempt": SpanKind.CLIENT,
    "router.prefill": SpanKind.CLIENT,
    "engine.generate": SpanKind.SERVER,
    "kv.lend": SpanKind.SERVER,
}
_CANCELLED = {
    "client_gone": Cancelled,
    "unspecified": Cancelled,
    "deadline": DeadlineExceeded,
}
"""Reasons to cancel that are no success; at a stop string, for example, there is one."""

_CALLERS_OWN = {cls.__name__ for cls, wire in WIRE.items() if wire.http_status < 500}


def named(figures: Mapping[str, Attribute]) -> dict[str, Attribute | Sequence[str]]:
    """The figures under the names that they have in spans."""
    attributes: dict[str, Attribute | Sequence[str]] = {}
    for name, value in figures.items():
        if name == "finish_reason":
            attributes["gen_ai.response.finish_reasons"] = str(value).split(",")
        else:
            attributes[_STANDARD.get(name, f"tokenway.{name}")] = value
    return attributes


def kind_of(stage: str) -> SpanKind:
    """Whether a stage is served to another service, asked of one, or neither."""
    return _KINDS.get(stage, SpanKind.INTERNAL)


def error_in(end: str) -> dict[str, Attribute]:
    """The figure `error` of a generation's end, if it is one: `failed: ` or `cancelled: `, why."""
    kind, _, why = end.partition(": ")
    if kind == "failed":
        return {"error": type(error_of(Code[why.upper()], "")).__name__}
    if kind == "cancelled" and why in _CANCELLED:
        return {"error": _CANCELLED[why].__name__}
    return {}


def is_failure(error: Attribute | None) -> bool:
    """Whether an error, by its class, is the service's: not one of the caller, nor its leaving."""
    return error is not None and error not in _CALLERS_OWN
