"""Errors as Chat Completions tells them."""

from __future__ import annotations

from typing import Any

from services.codec.protocols.reply import Refusal, json_bytes
from services.shared.errors import (
    ContextLengthExceeded,
    DeadlineExceeded,
    HeadersTooLarge,
    InvalidRequest,
    NotFound,
    Overloaded,
    PermissionDenied,
    RateLimited,
    RequestTooLarge,
    SentTooSlowly,
    ServiceError,
    Unauthenticated,
    Unavailable,
)

PROMPT = "messages"

_CODES: dict[type[ServiceError], str] = {
    Unauthenticated: "invalid_api_key",
    RequestTooLarge: "request_too_large",
    HeadersTooLarge: "request_header_fields_too_large",
    SentTooSlowly: "request_timeout",
    Overloaded: "rate_limit_exceeded",
    RateLimited: "rate_limit_exceeded",
    Unavailable: "overloaded",
    DeadlineExceeded: "timeout",
}


def refusal(error: ServiceError, request_id: str, prompt: str = PROMPT) -> Refusal:
    """The request ID stands in the headers alone. `prompt` names the field of what is continued."""
    del request_id
    return Refusal(error.http_status, json_bytes(error_object(error, prompt)))


def error_object(error: ServiceError, prompt: str = PROMPT) -> dict[str, Any]:
    return {
        "error": {
            "message": _message(error),
            "type": _type(error),
            "param": prompt if error.field == PROMPT else error.field,
            "code": _code(error),
        }
    }


def _message(error: ServiceError) -> str:
    """Agents find out by these words that they must shorten the conversation."""
    if isinstance(error, ContextLengthExceeded):
        return (
            f"This model's maximum context length is {error.context_length} tokens. However, your "
            f"messages resulted in {error.prompt_tokens} tokens. "
            "Please reduce the length of the messages."
        )
    return error.message


def _type(error: ServiceError) -> str:
    if isinstance(error, (Overloaded, RateLimited)):
        return "rate_limit_error"
    if isinstance(error, PermissionDenied):
        return "permission_error"
    return "invalid_request_error" if error.http_status < 500 else "server_error"


def _code(error: ServiceError) -> str | None:
    if isinstance(error, InvalidRequest):
        return error.reason
    if isinstance(error, NotFound):
        return "model_not_found" if error.field == "model" else "unknown_url"
    return _CODES.get(type(error))
