"""A gRPC method with a check before it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import grpc

Context = Any


def checked(handler: Any, check: Callable[[Context], None]) -> grpc.RpcMethodHandler[Any, Any]:
    """The method of `handler`, after a check that raises the error of who is not let in."""
    requests = "stream" if handler.request_streaming else "unary"
    kind = f"{requests}_{'stream' if handler.response_streaming else 'unary'}"
    behaviour = getattr(handler, kind)

    async def returning(request: Any, context: Context) -> Any:
        check(context)
        return await behaviour(request, context)

    async def yielding(request: Any, context: Context) -> AsyncIterator[Any]:
        check(context)
        async with aclosing(behaviour(request, context)) as responses:
            async for response in responses:
                yield response

    make = getattr(grpc, f"{kind}_rpc_method_handler")
    wrapped: grpc.RpcMethodHandler[Any, Any] = make(
        yielding if inspect.isasyncgenfunction(behaviour) else returning,
        request_deserializer=handler.request_deserializer,
        response_serializer=handler.response_serializer,
    )
    return wrapped
