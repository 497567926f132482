"""The guard before methods that services call: by the role that a certificate names."""

from __future__ import annotations

import grpc

from services.shared.access.address_rules import peer_of
from services.shared.access.denials import Denials, Kind, Why
from services.shared.errors import PermissionDenied
from services.shared.interceptor import Handler, Interceptor
from services.shared.mesh.peer import identity_of
from services.shared.mesh.rules import ADMINISTRATORS, Rules
from services.shared.method_handler import Context, checked


class RoleGuard(Interceptor):
    """Refuses who has no business with a method; connections have certificates on both sides.

    Args:
        rules: who may call what; methods that are not there are for administrators.
        denials: hears of who is refused and why.
    """

    def __init__(self, rules: Rules, denials: Denials) -> None:
        self._rules = rules
        self._denials = denials

    def around(self, handler: Handler, details: grpc.HandlerCallDetails) -> Handler:
        method = details.method.removeprefix("/")
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
