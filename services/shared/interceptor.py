"""What stands between a gRPC server and its methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

Handler = Any
"""grpc.RpcMethodHandler is generic in the stubs only, and None where there is no such method."""


class Interceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Of each call of a method that the server has."""

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        return None if handler is None else self.around(handler, handler_call_details)

    @abstractmethod
    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        """What answers the call in the place of `handler`; see `method_handler`."""
