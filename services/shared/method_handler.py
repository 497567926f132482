"""Methods of gRPC servers, with something in them or around them that was not there before."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import grpc

from services.shared.interceptor import Handler

Context = Any
"""grpc.aio.ServicerContext is generic in the stubs only, and differs for each method."""

Surrounding = Callable[[Any, Context], AbstractAsyncContextManager[None]]
"""Of a call with that request, or those requests."""


def replaced(
    handler: Handler,
    *,
    behaviour: Callable[..., Any] | None = None,
    read: Callable[[bytes], Any] | None = None,
    write: Callable[[Any], bytes] | None = None,
) -> Handler:
    """The method with what is given here instead of its own."""
    kind = _kind(handler)
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    return make(
        behaviour or getattr(handler, kind),
        request_deserializer=read or handler.request_deserializer,
        response_serializer=write or handler.response_serializer,
    )


def surrounded(handler: Handler, surrounding: Surrounding) -> Handler:
    """The method, run inside what `surrounding` gives for each call."""
    behaviour = getattr(handler, _kind(handler))

    async def returning(request: Any, context: Context) -> Any:
        async with surrounding(request, context):
            return await behaviour(request, context)

    async def yielding(request: Any, context: Context) -> AsyncIterator[Any]:
        async with surrounding(request, context), aclosing(behaviour(request, context)) as answers:
            async for answer in answers:
                yield answer

    is_generator = inspect.isasyncgenfunction(behaviour)
    return replaced(handler, behaviour=yielding if is_generator else returning)


def checked(handler: Handler, check: Callable[[Context], None]) -> Handler:
    """The method, after a check that raises the error of who is not let in."""

    @asynccontextmanager
    async def let_in(_: Any, context: Context) -> AsyncIterator[None]:
        check(context)
        yield

    return surrounded(handler, let_in)


def _kind(handler: Handler) -> str:
    requests = "stream" if handler.request_streaming else "unary"
    return f"{requests}_{'stream' if handler.response_streaming else 'unary'}"
