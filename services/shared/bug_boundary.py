"""Where an RPC's errors become statuses: the caller's own with their text, bugs without."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from services.shared.errors import Code, InvalidRequest, ServiceError
from services.shared.interceptor import Handler, Interceptor
from services.shared.method_handler import Context, replaced, surrounded
from services.shared.trace_context import HEADER, TraceContext, current

FIELD_KEY = "tokenway-field"
"""Trailing metadata that names the request's field at fault, where one is."""

RETRY_KEY = "tokenway-retry-after-ms"
"""Trailing metadata that tells when it is worth while to ask again, where that can be said."""

MAX_MESSAGE = 1024
MAX_FIELD = 256

_STATUS: dict[Code, grpc.StatusCode] = {
    Code(status.value[0]): status for status in grpc.StatusCode if status.value[0]
}
_log = logging.getLogger(__name__)


class BugBoundary(Interceptor):
    """Wraps every RPC of a server, whatever its kind."""

    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        if not handler.request_streaming:
            handler = replaced(handler, read=_reading(handler.request_deserializer))
        return surrounded(handler, partial(_boundary, details.method))


def _reading(read: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Gives a fault back: one that is raised here would be told to the caller by gRPC itself."""
    if read is None:
        return None

    def call(data: bytes) -> Any:
        try:
            return read(data)
        except DecodeError as error:
            return error

    return call


@asynccontextmanager
async def _boundary(method: str, request: Any, context: Context) -> AsyncIterator[None]:
    current.set(trace_of(context) or TraceContext.new())
    try:
        try:
            if isinstance(request, DecodeError):
                raise request
            yield
        except DecodeError as error:
            raise InvalidRequest("a message could not be read") from error
    except ServiceError as error:
        await context.abort(
            _STATUS[error.code],
            _printable(error.message)[:MAX_MESSAGE],
            (*(context.trailing_metadata() or ()), *_trailing(error)),
        )
    except grpc.aio.AbortError:
        raise
    except Exception:  # noqa: BLE001 the one boundary: a bug is logged and told without details
        _log.exception("bug in %s", method)
        await context.abort(grpc.StatusCode.INTERNAL, "internal error")


def trace_of(context: Context) -> TraceContext | None:
    """The trace that the caller's metadata names, if they name one."""
    metadata = dict(context.invocation_metadata() or ())
    return TraceContext.given(metadata.get(HEADER))


def _trailing(error: ServiceError) -> tuple[tuple[str, str], ...]:
    trailing: list[tuple[str, str]] = []
    if error.field is not None:
        trailing.append((FIELD_KEY, _ascii(error.field)[:MAX_FIELD]))
    if error.retry_after_s is not None:
        trailing.append((RETRY_KEY, str(round(1000 * error.retry_after_s))))
    return tuple(trailing)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _ascii(text: str) -> str:
    """Metadata may hold printable ASCII only; a caller's key may hold anything."""
    return "".join(char if " " <= char <= "~" else f"\\u{{{ord(char):x}}}" for char in text)
