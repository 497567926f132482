"""The mesh that settings ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.shared.access.denials import Denials
from services.shared.access.loopback import is_loopback
from services.shared.audit.audit import Audit
from services.shared.audit.opening import auditing
from services.shared.config import BadConfig
from services.shared.mesh.certified_mesh import CertifiedMesh
from services.shared.mesh.following import FollowedCertificate
from services.shared.mesh.mesh import ClearMesh, Mesh
from services.shared.tasks import Tasks
from services.shared.tls.certificate_files import BadCertificates
from services.shared.tls.identity import Role
from services.shared.tls.settings import MeshSettings

_log = logging.getLogger(__name__)


@asynccontextmanager
async def meshing(settings: MeshSettings, role: Role, host: str) -> AsyncIterator[Mesh]:
    """Follows our certificates and notes what operators do inside the block.

    Args:
        settings: whether there are any, and where.
        role: of this service.
        host: where it listens.

    Raises:
        BadConfig: certificates are missing or cannot be used, or without them others would reach
            us from beyond this machine.
    """
    async with auditing(settings, role) as audit:
        denials = Denials(asyncio.get_running_loop(), audit)
        try:
            if settings.mtls:
                async with _certified(settings, role, denials, audit) as mesh:
                    yield mesh
            else:
                yield _in_the_clear(host, denials, audit)
        finally:
            denials.close()


@asynccontextmanager
async def _certified(
    settings: MeshSettings, role: Role, denials: Denials, audit: Audit
) -> AsyncIterator[Mesh]:
    certificate = _certificate(settings, role)

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s is not followed any more; the certificates read last count on", name)

    async with Tasks(crashed) as tasks:
        tasks.start(str(settings.certificates), certificate.follow())
        yield CertifiedMesh(certificate, denials, audit)


def _certificate(settings: MeshSettings, role: Role) -> FollowedCertificate:
    if settings.certificates is None:
        raise BadConfig(
            "security.certificates must name the folder of this service's certificate: make one "
            f"with `tokenway certs issue {role} NAME`, or set security.mtls to false on a machine "
            "where nobody else is"
        )
    try:
        return FollowedCertificate(settings.certificates, role)
    except BadCertificates as error:
        raise BadConfig(f"security.certificates: {error}") from error


def _in_the_clear(host: str, denials: Denials, audit: Audit) -> Mesh:
    if not is_loopback(host):
        raise BadConfig(
            f"server.host is {host}, beyond this machine, and security.mtls is false: anybody "
            "there would be served, so give it certificates or a host of this machine alone"
        )
    _log.warning("SERVICES TALK IN THE CLEAR AND EVERY PROCESS HERE IS OBEYED: security.mtls false")
    return ClearMesh(denials, audit)
