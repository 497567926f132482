"""A server that ends leaves nothing of its calls behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import grpc

from services.shared.channel import open_channel
from services.shared.server import serving

CALLS = 40
WAIT = "/test.Waits/wait"


async def wait(_: bytes, __: Any) -> AsyncIterator[bytes]:
    yield b"begun"
    await asyncio.Event().wait()


def register(server: grpc.aio.Server) -> None:
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "wait": grpc.unary_stream_rpc_method_handler(wait)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Waits", methods),))


async def test_no_task_of_a_cancelled_call_outlives_its_server() -> None:
    async with AsyncExitStack() as clients:
        async with serving("127.0.0.1:0", register, ["test.Waits"], grace_s=0) as door:
            calls: list[Any] = []
            for _ in range(CALLS):
                channel = await clients.enter_async_context(open_channel(door.address))
                waiting: Any = channel.unary_stream
                calls.append(waiting(WAIT)(b""))
            for call in calls:
                await call.read()
        names = {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()}
        assert not names & {"_handle_exceptions", "_schedule_rpc_coro"}
