"""What operators do to a service by gRPC, noted with who did it and what became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.rpc_guard import current_caller
from services.shared.audit.audit import Audit
from services.shared.audit.event import DONE, AuditEvent
from services.shared.errors import ServiceError
from services.shared.interceptor import Handler, Interceptor
from services.shared.mesh.peer import identity_of
from services.shared.method_handler import Context, surrounded
from services.shared.trace_context import current

Deed = tuple[str, str]
"""An action, and what of."""

_ROUTER = "/tokenway.router.v1.RouterService"
_ENGINE = "/tokenway.engine.v1.EngineService"

DEEDS: Mapping[str, Callable[[Any], Deed]] = {
    f"{_ROUTER}/DrainReplica": lambda asked: ("undrain" if asked.undo else "drain", asked.address),
    f"{_ROUTER}/SetWeight": lambda asked: ("weight", f"{asked.address} {asked.weight:g}"),
    f"{_ROUTER}/Disconnect": lambda asked: (
        "disconnect",
        f"{asked.address} for {asked.duration_ms} ms",
    ),
    f"{_ENGINE}/Drain": lambda _: ("drain", "all"),
    f"{_ENGINE}/SetServiceCache": lambda asked: ("cache", "on" if asked.enabled else "off"),
    f"{_ENGINE}/FlushCache": lambda asked: (
        "cache flush",
        "also of the service" if asked.service else "own",
    ),
}
"""All methods that change how a service runs."""


class AdminCalls(Interceptor):
    """Stands before the guards, so that what they refuse is noted too."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        deed_of = DEEDS.get(details.method)
        if deed_of is None or handler.unary_unary is None:
            return handler
        return surrounded(handler, partial(self._noting, deed_of))

    @asynccontextmanager
    async def _noting(
        self, deed_of: Callable[[Any], Deed], request: Any, context: Context
    ) -> AsyncIterator[None]:
        outcome = "failed"
        try:
            yield
            outcome = DONE
        except ServiceError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._audit.note(_event(deed_of(request), outcome, context))


def _event(deed: Deed, outcome: str, context: Context) -> AuditEvent:
    action, what = deed
    address = peer_of(context.peer())
    trace = current.get()
    request_id = dict(context.invocation_metadata() or ()).get("x-request-id")
    return AuditEvent(
        action=action,
        who=_who(context, address),
        what=what,
        outcome=outcome,
        address=address,
        request_id=request_id,
        trace_id=None if trace is None else trace.trace_id,
    )


def _who(context: Context, address: str) -> str:
    identity = identity_of(context)
    if identity is not None:
        return identity.uri
    key_id = current_caller.get().key_id
    return f"address:{address}" if key_id is None else f"key:{key_id}"
