"""Messages and bytes that went over gRPC, counted where they are packed and unpacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from services.shared.interceptor import Handler, Interceptor
from services.shared.method_handler import replaced

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


class TrafficMeter(Interceptor):
    """Counts all that goes through a server."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def around(self, handler: Handler, _: grpc.HandlerCallDetails) -> Handler:
        unpack, pack = handler.request_deserializer, handler.response_serializer
        return replaced(
            handler,
            read=unpack and self._traffic.unpacking(unpack),
            write=pack and self._traffic.packing(pack),
        )
