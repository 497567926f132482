"""The guard before a gRPC server: every method is guarded that is not named here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.guard import Denial, Guard
from services.shared.access.refused import Refused
from services.shared.access.shown import Shown
from services.shared.errors import ServiceError
from services.shared.interceptor import Handler, Interceptor
from services.shared.method_handler import Context, checked

OPEN_SERVICES = frozenset({"grpc.health.v1.Health"})
"""Whoever decides where to send requests has no key."""

current_caller: ContextVar[Caller] = ContextVar("current_caller", default=ANYBODY)
"""Of the call that runs."""

Words = Callable[[str, Denial], ServiceError]


def plain(_: str, denial: Denial) -> ServiceError:
    return denial.error


class RpcGuard(Interceptor):
    """Refuses before a message is read where what was shown is not taken.

    Args:
        guard: decides.
        words: how a denial of a method is told; gets the full name of the method.
    """

    def __init__(self, guard: Guard, words: Words = plain) -> None:
        self._guard = guard
        self._words = words

    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        method = details.method
        if method.split("/")[1] in OPEN_SERVICES:
            return handler
        shown = Shown.of(details.invocation_metadata or ())
        found = self._guard.found(shown)

        def check(context: Context) -> None:
            self._check(method, found, shown, context)

        if isinstance(found, Refused):
            # A handler of streams is called before it has a message, whatever the method's kind.
            return grpc.stream_stream_rpc_method_handler(_refusing(check))
        return checked(handler, check)

    def _check(self, method: str, found: Caller | Refused, shown: Shown, context: Context) -> None:
        """Raises the error of a denial; else the caller is the current one."""
        admitted = self._guard.admit(found, shown, peer_of(context.peer()))
        if isinstance(admitted, Denial):
            context.set_trailing_metadata((("x-request-id", admitted.request_id),))
            raise self._words(method, admitted)
        current_caller.set(admitted)


def _refusing(check: Callable[[Context], None]) -> Callable[[Any, Context], AsyncIterator[bytes]]:
    async def call(_: Any, context: Context) -> AsyncIterator[bytes]:
        check(context)
        yield b""

    return call
