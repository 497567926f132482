"""What a service is to others and how it calls them: with certificates, or in the clear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import grpc

from services.shared.access.denials import Denials
from services.shared.audit.admin_calls import AdminCalls
from services.shared.audit.audit import Audit
from services.shared.mesh.rules import Rules
from services.shared.tls.way import CLEAR, Way


class Mesh(Protocol):
    """Of one process."""

    @property
    def denials(self) -> Denials:
        """Hears of who is refused, at all doors of the process."""

    @property
    def server(self) -> grpc.ServerCredentials | None:
        """Of a door that takes only those who show a certificate; None in the clear."""

    @property
    def door(self) -> grpc.ServerCredentials | None:
        """Of a door whose callers prove themselves otherwise; None in the clear."""

    @property
    def not_after(self) -> float | None:
        """When our certificate ends, in seconds since 1970; None in the clear."""

    def way(self, name: str) -> Way:
        """To servers whose certificates carry the DNS name."""

    def guards(self, rules: Rules) -> Sequence[grpc.aio.ServerInterceptor[Any, Any]]:
        """What stands before the methods of `server`."""


class ClearMesh:
    """Nobody shows anything, so roles are not known."""

    server = None
    door = None
    not_after: float | None = None

    def __init__(self, denials: Denials, audit: Audit) -> None:
        self.denials = denials
        self._audit = audit

    def way(self, name: str) -> Way:  # noqa: ARG002  # names are not checked
        return CLEAR

    def guards(self, rules: Rules) -> Sequence[grpc.aio.ServerInterceptor[Any, Any]]:  # noqa: ARG002
        return [AdminCalls(self._audit)]
