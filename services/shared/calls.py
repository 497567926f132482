"""The calls that a server is busy with, so that its end can wait for theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

LAST_TURNS = 10
"""Of the event loop: gRPC's own task of a call ends a few turns after the call's handler."""


class Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Sees each call of a server begin and end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await continuation(handler_call_details)

    async def over(self, timeout_s: float) -> None:
        """Returns when nothing is left of any call, after the server has ended them.

        The event loop's end would cancel what is left, and gRPC writes lines of its own to stderr
        for that.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
            for _ in range(LAST_TURNS):
                await asyncio.sleep(0)
