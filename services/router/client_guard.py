"""Whose request it is, where a client's certificate or key says so and the request may not."""

from __future__ import annotations

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.caller import ANYBODY, Caller
from services.shared.access.guard import Denial, Guard
from services.shared.access.rpc_guard import OPEN_SERVICES, current_caller
from services.shared.access.shown import Shown
from services.shared.interceptor import Handler, Interceptor
from services.shared.mesh.peer import identity_of
from services.shared.method_handler import Context, checked
from services.shared.tls.identity import Role


class ClientGuard(Interceptor):
    """Services are believed whose requests they send on; a client is told who it is.

    Args: guard: knows clients by keys or tokens; None where a certificate's name is the tenant.
    """

    def __init__(self, guard: Guard | None) -> None:
        self._guard = guard

    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        is_open = details.method.split("/")[1] in OPEN_SERVICES
        return handler if is_open else checked(handler, self._check)

    def _check(self, context: Context) -> None:
        current_caller.set(self._caller(context))

    def _caller(self, context: Context) -> Caller:
        """Raises Unauthenticated."""
        identity = identity_of(context)
        if identity is None or identity.role is not Role.CLIENT:  # the role guard comes before
            return ANYBODY
        if self._guard is None:
            return Caller(tenant=identity.name)
        shown = Shown.of(context.invocation_metadata() or ())
        admitted = self._guard.admit(self._guard.found(shown), shown, peer_of(context.peer()))
        if isinstance(admitted, Denial):
            context.set_trailing_metadata((("x-request-id", admitted.request_id),))
            raise admitted.error
        return admitted
