"""Errors of Responses that come after the first byte."""

from __future__ import annotations

from typing import Any

from services.codec.protocols.chat_completions.errors import error_object
from services.shared.errors import InvalidRequest, Overloaded, RateLimited, ServiceError


def error_event(error: ServiceError) -> dict[str, Any]:
    told = error_object(error)["error"]
    return {
        "code": told["code"] or failure_code(error),
        "message": told["message"],
        "param": told["param"],
    }


def failure(error: ServiceError) -> dict[str, Any]:
    """The error of a failed response."""
    return {"code": failure_code(error), "message": error_object(error)["error"]["message"]}


def failure_code(error: ServiceError) -> str:
    if isinstance(error, (Overloaded, RateLimited)):
        return "rate_limit_exceeded"
    return "invalid_prompt" if isinstance(error, InvalidRequest) else "server_error"
