"""What a caller is told of a generation that a replica failed and that goes on nowhere."""

from __future__ import annotations

from dataclasses import replace

from services.shared.errors import Code, ServiceError
from services.shared.stream.events import Failed


def given_up(cause: Failed, why: str) -> Failed:
    """The failure by `cause`, and why no other replica makes it good.

    It stays retryable: behind another router are other replicas.
    """
    full = cause.code is Code.RESOURCE_EXHAUSTED
    code = Code.RESOURCE_EXHAUSTED if full else Code.UNAVAILABLE
    return Failed(code=code, message=f"{cause.message}; {why}", retryable=True)


def without_place(cause: Failed | None, error: ServiceError) -> Failed:
    """Why there is no place, and why one was needed again, if it was."""
    if cause is None or error.code is Code.DEADLINE_EXCEEDED:
        return Failed.of(error)
    return replace(given_up(cause, error.message), retry_after_s=error.retry_after_s)
