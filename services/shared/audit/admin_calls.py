"""What operators do to a service by gRPC, noted with who did it and what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.rpc_guard import current_caller
from services.shared.audit.audit import Audit
from services.shared.audit.event import DONE, AuditEvent
from services.shared.errors import ServiceError
from services.shared.mesh.peer import identity_of
from services.shared.trace_context import current

Context = Any
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


class AdminCalls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Stands before the guards, so that what they refuse is noted too."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any]]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        handler: Any = await continuation(handler_call_details)
        deed_of = DEEDS.get(handler_call_details.method)
        if handler is None or deed_of is None or handler.unary_unary is None:
            return handler  # type: ignore[no-any-return]  # the stubs forget None
        behaviour = handler.unary_unary

        async def noted(request: Any, context: Context) -> Any:
            outcome = "failed"
            try:
                response = await behaviour(request, context)
                outcome = DONE
            except ServiceError as error:
                outcome = type(error).__name__
                raise
            finally:
                self._audit.note(_event(deed_of(request), outcome, context))
            return response

        return grpc.unary_unary_rpc_method_handler(
            noted,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


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
