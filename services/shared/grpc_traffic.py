"""Messages and bytes that went over gRPC, counted where they are packed and unpacked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Pack = Callable[[Any], bytes]
Unpack = Callable[[bytes], Any]


class Traffic:
    """Counts since the start."""

    def __init__(self) -> None:
        self.sent_messages = self.sent_bytes = 0
        self.received_messages = self.received_bytes = 0

    def packing(self, pack: Pack) -> Pack:
        """`pack`, counted."""

        def counted(message: Any) -> bytes:
            data = pack(message)
            self.sent_messages += 1
            self.sent_bytes += len(data)
            return data

        return counted

    def unpacking(self, unpack: Unpack) -> Unpack:
        """`unpack`, counted."""

        def counted(data: bytes) -> Any:
            self.received_messages += 1
            self.received_bytes += len(data)
            return unpack(data)

        return counted


class TrafficMeter(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Counts all that goes through a server."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        handler: Any = await continuation(handler_call_details)
        if handler is None:
            return handler  # type: ignore[return-value]  # the stubs forget None
        requests = "stream" if handler.request_streaming else "unary"
        kind = f"{requests}_{'stream' if handler.response_streaming else 'unary'}"
        make = getattr(grpc, f"{kind}_rpc_method_handler")
        unpack, pack = handler.request_deserializer, handler.response_serializer
        metered: grpc.RpcMethodHandler[Any, Any] = make(
            getattr(handler, kind),
            request_deserializer=unpack and self._traffic.unpacking(unpack),
            response_serializer=pack and self._traffic.packing(pack),
        )
        return metered
