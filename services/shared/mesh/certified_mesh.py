"""A mesh in which everybody shows a certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import uniform
from typing import Any

import grpc

from services.shared.access.denials import Denials
from services.shared.audit.admin_calls import AdminCalls
from services.shared.audit.audit import Audit
from services.shared.channel_options import CONNECTION_AGE_S
from services.shared.mesh.following import FollowedCertificate
from services.shared.mesh.role_guard import RoleGuard
from services.shared.mesh.rules import Rules
from services.shared.tls.dial import dialling
from services.shared.tls.server_credentials import mutual, one_sided
from services.shared.tls.way import Way

YOUNGEST, OLDEST = 0.5, 0.75
"""A session moves between these parts of the age at which a server would end its connection."""


class CertifiedMesh:
    """Args: certificate: ours. denials: see Mesh. audit: hears what operators do."""

    def __init__(self, certificate: FollowedCertificate, denials: Denials, audit: Audit) -> None:
        self._certificate = certificate
        self.denials = denials
        self._audit = audit

    @property
    def server(self) -> grpc.ServerCredentials:
        return mutual(self._certificate.files)

    @property
    def door(self) -> grpc.ServerCredentials:
        return one_sided(self._certificate.files)

    @property
    def not_after(self) -> float:
        return self._certificate.value.not_after

    def way(self, name: str) -> Way:
        return _CertifiedWay(self._certificate, name)

    def guards(self, rules: Rules) -> Sequence[grpc.aio.ServerInterceptor[Any, Any]]:
        return [AdminCalls(self._audit), RoleGuard(rules, self.denials)]


@dataclass(frozen=True, slots=True)
class _CertifiedWay:
    certificate: FollowedCertificate
    name: str

    @property
    def version(self) -> int:
        return self.certificate.version

    def dial(self, address: str) -> grpc.aio.Channel:
        return dialling(self.certificate.files, self.name)(address)

    async def worn(self, version: int) -> None:
        """When other certificates count, and long before the server's patience with old ones."""
        age_s = CONNECTION_AGE_S * uniform(YOUNGEST, OLDEST)  # noqa: S311  # no secret
        with suppress(TimeoutError):
            async with asyncio.timeout(age_s):
                await self.certificate.after(version)
