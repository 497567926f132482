"""What callers may read of errors that other services told."""

from __future__ import annotations

import logging

from services.shared.errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidRequest,
    Overloaded,
    ServiceError,
    Unavailable,
)

_FIXED: dict[type[ServiceError], str] = {
    Overloaded: "the server is busy, try again later",
    Unavailable: "the model cannot be served now, try again later",
    DeadlineExceeded: "the time for the request is over",
    Cancelled: "the request was cancelled",
}

_EXPECTED = frozenset({Overloaded, DeadlineExceeded})
"""What a sound system says under load; there may be many of them."""

MAX_CHARACTERS = 300

_log = logging.getLogger(__name__)


def public_error(error: ServiceError) -> ServiceError:
    """The error with a text of our own; what is wrong with the request itself is passed on.

    The original, which may name addresses, goes to the log.
    """
    if type(error) is InvalidRequest and error.message.isprintable():
        return InvalidRequest(error.message[:MAX_CHARACTERS], field=error.field)
    level = logging.INFO if type(error) in _EXPECTED else logging.WARNING
    _log.log(level, "the engine failed a request: %s: %s", type(error).__name__, error.message)
    text = _FIXED.get(type(error))
    if text is None:
        return Internal("internal error")
    return type(error)(text, retry_after_s=error.retry_after_s)
