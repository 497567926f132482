"""What callers can act on, and how each such error looks on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar


class Code(IntEnum):
    """Canonical codes, numbered as in google.rpc.Code and grpc.StatusCode."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ServiceError(Exception):
    """Base of all errors whose text a caller may read. Everything else is a bug.

    Args:
        message: says what to change, with the limit and the value.
        field: the request's field at fault, as the caller wrote it, for example `messages[2].role`.
        retry_after_s: seconds after which it is worth while to ask again, where that can be said.
    """

    def __init__(
        self, message: str, *, field: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.retry_after_s = retry_after_s

    @property
    def code(self) -> Code:
        return WIRE[type(self)].code

    @property
    def http_status(self) -> int:
        return WIRE[type(self)].http_status


class InvalidRequest(ServiceError):
    """A value that no retry makes right."""

    reason: ClassVar[str] = "invalid_value"


class InvalidType(InvalidRequest):
    """A value of the wrong JSON type."""

    reason = "invalid_type"


class MissingField(InvalidRequest):
    """A required value is not there."""

    reason = "missing_required_parameter"


class Unsupported(InvalidRequest):
    """A value that is right elsewhere and has no meaning here."""

    reason = "unsupported_value"


class ContextLengthExceeded(InvalidRequest):
    """A prompt that leaves no room for a single output token.

    Args:
        prompt_tokens: tokens of the prompt.
        context_length: tokens that prompt and output may have together.
    """

    reason = "context_length_exceeded"

    def __init__(
        self, prompt_tokens: int, context_length: int, *, field: str | None = None
    ) -> None:
        super().__init__(
            f"prompt must be shorter than the context of {context_length} tokens, "
            f"got {prompt_tokens}",
            field=field,
        )
        self.prompt_tokens = prompt_tokens
        self.context_length = context_length


class ContentRefused(InvalidRequest):
    """What the content filter does not let through; which words they are is not told."""

    reason = "content_filter"


class RequestTooLarge(ServiceError):
    """A body beyond the limit of the door."""


class HeadersTooLarge(ServiceError):
    """More before a body than the door takes."""


class SentTooSlowly(ServiceError):
    """A request that did not come in time; the connection ends."""


class Unauthenticated(ServiceError):
    """No key, or one that is not taken; why is nobody's to know but the log's."""


class PermissionDenied(ServiceError):
    """Not for this caller, whatever it shows."""


class NotFound(ServiceError):
    """A model, path or generation that is not here."""


class AlreadyExists(ServiceError):
    """A name that is in use."""


class FailedPrecondition(ServiceError):
    """Something must be configured or done before."""


class Overloaded(ServiceError):
    """No room now; later there may be."""


class RateLimited(ServiceError):
    """The caller's own share is used up, whoever else has room."""


class Unavailable(ServiceError):
    """Nothing reachable can serve; elsewhere or later may work."""


class DeadlineExceeded(ServiceError):
    """The time that the caller gave is over."""


class Cancelled(ServiceError):
    """The caller went away."""


class Internal(ServiceError):
    """A bug, told without its details; they are in the log under the request's trace."""


@dataclass(frozen=True, slots=True)
class Wire:
    """How an error class is told: canonical code over gRPC, status over HTTP."""

    code: Code
    http_status: int


WIRE: dict[type[ServiceError], Wire] = {
    InvalidRequest: Wire(Code.INVALID_ARGUMENT, 400),
    InvalidType: Wire(Code.INVALID_ARGUMENT, 400),
    MissingField: Wire(Code.INVALID_ARGUMENT, 400),
    Unsupported: Wire(Code.INVALID_ARGUMENT, 400),
    ContextLengthExceeded: Wire(Code.INVALID_ARGUMENT, 400),
    ContentRefused: Wire(Code.INVALID_ARGUMENT, 400),
    RequestTooLarge: Wire(Code.OUT_OF_RANGE, 413),
    HeadersTooLarge: Wire(Code.OUT_OF_RANGE, 431),
    SentTooSlowly: Wire(Code.DEADLINE_EXCEEDED, 408),
    Unauthenticated: Wire(Code.UNAUTHENTICATED, 401),
    PermissionDenied: Wire(Code.PERMISSION_DENIED, 403),
    NotFound: Wire(Code.NOT_FOUND, 404),
    AlreadyExists: Wire(Code.ALREADY_EXISTS, 409),
    FailedPrecondition: Wire(Code.FAILED_PRECONDITION, 400),
    Overloaded: Wire(Code.RESOURCE_EXHAUSTED, 429),
    RateLimited: Wire(Code.RESOURCE_EXHAUSTED, 429),
    Unavailable: Wire(Code.UNAVAILABLE, 503),
    DeadlineExceeded: Wire(Code.DEADLINE_EXCEEDED, 504),
    Cancelled: Wire(Code.CANCELLED, 499),
    Internal: Wire(Code.INTERNAL, 500),
}

_BY_CODE: dict[Code, type[ServiceError]] = {
    Code.INVALID_ARGUMENT: InvalidRequest,
    Code.OUT_OF_RANGE: RequestTooLarge,
    Code.UNAUTHENTICATED: Unauthenticated,
    Code.PERMISSION_DENIED: PermissionDenied,
    Code.NOT_FOUND: NotFound,
    Code.ALREADY_EXISTS: AlreadyExists,
    Code.FAILED_PRECONDITION: FailedPrecondition,
    Code.RESOURCE_EXHAUSTED: Overloaded,
    Code.UNAVAILABLE: Unavailable,
    Code.DEADLINE_EXCEEDED: DeadlineExceeded,
    Code.CANCELLED: Cancelled,
}


def error_of(
    code: Code, message: str, field: str | None = None, retry_after_s: float | None = None
) -> ServiceError:
    """The error that another service told by `code`; codes without a class are `Internal`."""
    return _BY_CODE.get(code, Internal)(message, field=field, retry_after_s=retry_after_s)
