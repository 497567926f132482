"""The guard before methods that services call: by the role that a certificate names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.checked_handler import Context, checked
from services.shared.access.denials import Denials, Kind, Why
from services.shared.errors import PermissionDenied
from services.shared.mesh.peer import identity_of
from services.shared.mesh.rules import ADMINISTRATORS, Rules


class RoleGuard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Refuses who has no business with a method; connections have certificates on both sides.

    Args:
        rules: who may call what; methods that are not there are for administrators.
        denials: hears of who is refused and why.
    """

    def __init__(self, rules: Rules, denials: Denials) -> None:
        self._rules = rules
        self._denials = denials

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
        method = handler_call_details.method.removeprefix("/")
        return checked(handler, lambda context: self._check(method, context))

    def _check(self, method: str, context: Context) -> None:
        identity = identity_of(context)
        if identity is not None and identity.role in self._rules.get(method, ADMINISTRATORS):
            return
        role = "nobody of ours" if identity is None else identity.role.value
        address, cause = peer_of(context.peer()), f"{role} at {method}"
        why = Why(address=address, cause=cause, kind=Kind.ROLE)
        context.set_trailing_metadata((("x-request-id", self._denials.note(why)),))
        raise PermissionDenied(f"{method} is not for the role {role}")
