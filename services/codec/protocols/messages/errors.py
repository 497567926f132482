"""Errors as Messages tells them."""

from __future__ import annotations

from typing import Any

from services.codec.protocols.reply import Refusal, json_bytes
from services.shared.errors import (
    AlreadyExists,
    ContextLengthExceeded,
    DeadlineExceeded,
    Internal,
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

OVERLOADED_STATUS = 529

_TYPES: dict[type[ServiceError], str] = {
    Unauthenticated: "authentication_error",
    PermissionDenied: "permission_error",
    NotFound: "not_found_error",
    AlreadyExists: "conflict_error",
    RequestTooLarge: "request_too_large",
    SentTooSlowly: "timeout_error",
    Overloaded: "overloaded_error",
    RateLimited: "rate_limit_error",
    Unavailable: "api_error",
    DeadlineExceeded: "timeout_error",
    Internal: "api_error",
}


def refusal(error: ServiceError, request_id: str) -> Refusal:
    status = OVERLOADED_STATUS if isinstance(error, Overloaded) else error.http_status
    return Refusal(status, json_bytes(error_object(error, request_id)))


def error_object(error: ServiceError, request_id: str) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {
            "type": _TYPES.get(type(error), "invalid_request_error"),
            "message": _message(error),
        },
        "request_id": request_id,
    }


def _message(error: ServiceError) -> str:
    """Agents compact the conversation when they read these words."""
    if isinstance(error, ContextLengthExceeded):
        return f"prompt is too long: {error.prompt_tokens} tokens > {error.context_length} maximum"
    return error.message
