"""Where an RPC's errors become statuses: the caller's own with their text, bugs without."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from services.shared.errors import Code, InvalidRequest, ServiceError
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


class BugBoundary(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Wraps every RPC of a server, whatever its kind."""

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        handler: Any = await continuation(handler_call_details)
        if handler is None:  # no such method; grpc answers UNIMPLEMENTED
            return handler  # type: ignore[return-value]  # the stubs forget None
        kind, make = _KINDS[handler.request_streaming, handler.response_streaming]
        behaviour = getattr(handler, kind)
        wrap = _yielding if inspect.isasyncgenfunction(behaviour) else _returning
        read = handler.request_deserializer
        return make(
            wrap(behaviour, handler_call_details.method),
            request_deserializer=read if handler.request_streaming else _reading(read),
            response_serializer=handler.response_serializer,
        )


_KINDS: dict[tuple[bool, bool], tuple[str, Callable[..., grpc.RpcMethodHandler[Any, Any]]]] = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


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


def _read(request: Any) -> Any:
    if isinstance(request, DecodeError):
        raise request
    return request


def _returning(behaviour: Callable[..., Awaitable[Any]], method: str) -> Callable[..., Any]:
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        async with _boundary(method, context):
            return await behaviour(_read(request), context)

    return call


def _yielding(behaviour: Callable[..., AsyncGenerator[Any]], method: str) -> Callable[..., Any]:
    async def call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        async with (
            _boundary(method, context),
            aclosing(behaviour(_read(request), context)) as responses,
        ):
            async for response in responses:
                yield response

    return call


@asynccontextmanager
async def _boundary(
    method: str, context: grpc.aio.ServicerContext[Any, Any]
) -> AsyncIterator[None]:
    current.set(trace_of(context) or TraceContext.new())
    try:
        try:
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


def trace_of(context: grpc.aio.ServicerContext[Any, Any]) -> TraceContext | None:
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
