"""What a caller is told of a generation that a replica failed and that goes on nowhere."""

from __future__ import annotations

from dataclasses import replace

from services.shared.errors import Code, ServiceError
from services.shared.stream.events import Failed


def given_up(cause: Failed, why: str) -> Failed:
    """The failure by `cause`, and why no other replica makes it good.

    It stays retryable: behind another router are other replicas.
    """
    code = Code.RESOURCE_EXHAUSTED if _is_full(cause) else Code.UNAVAILABLE
    return Failed(
        code=code,
        message=f"{cause.message}; {why}",
        retryable=True,
        retry_after_s=cause.retry_after_s,
    )


def last_of(earlier: Failed | None, later: Failed) -> Failed:
    """The later failure; where both replicas were full, with the time of the one that is sooner."""
    if earlier is None or not (_is_full(earlier) and _is_full(later)):
        return later
    return replace(later, retry_after_s=_sooner(earlier.retry_after_s, later.retry_after_s))


def without_place(cause: Failed | None, error: ServiceError) -> Failed:
    """Why there is no place, and why one was needed again, if it was."""
    if cause is None or error.code is Code.DEADLINE_EXCEEDED:
        return Failed.of(error)
    retry_after_s = _sooner(cause.retry_after_s, error.retry_after_s)
    return replace(given_up(cause, error.message), retry_after_s=retry_after_s)


def _is_full(failed: Failed) -> bool:
    return failed.code is Code.RESOURCE_EXHAUSTED


def _sooner(one_s: float | None, other_s: float | None) -> float | None:
    return min((time_s for time_s in (one_s, other_s) if time_s is not None), default=None)
