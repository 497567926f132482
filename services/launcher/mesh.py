"""Certificates of the services that `tokenway up` starts: whether there are, and which."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.launcher.certs.issued import keep_issued
from services.launcher.certs.subject import Subject
from services.launcher.own_certificates import (
    ADMIN,
    CERTIFICATES,
    NONE,
    SERVICE_VARIABLE,
    VARIABLE,
    Calling,
)
from services.shared.config import BadConfig
from services.shared.config_tree import SettingError, parsed
from services.shared.tls.identity import Identity, Role
from services.shared.tls.settings import MeshSettings

MTLS_VARIABLE = "TOKENWAY_SECURITY__MTLS"
RENEW_S = 3600.0

Filed = Mapping[str, Mapping[str, Any]]
"""The section `security` of each service's file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mesh:
    """How the services meet that are started here.

    Attributes:
        mtls: whether they show certificates.
        made: the folder where certificates are made; None where services have their own, or none.
        shown: the folder with what the launcher shows; None calls in the clear.
    """

    mtls: bool
    made: Path | None = None
    shown: Path | None = None

    def environ(self, name: str) -> dict[str, str]:
        """What a service of that name is told."""
        told = {MTLS_VARIABLE: "true" if self.mtls else "false"}
        return told if self.made is None else told | {SERVICE_VARIABLE: str(self.made / name)}

    def calling(self, name: str) -> Calling:
        """Args: name: that the other end must carry in its certificate."""
        return Calling(self.shown, name)

    def keep(self, engines: Sequence[str]) -> None:
        """Makes what is missing or ends soon. Raises BadAuthority.

        Args: engines: their names.
        """
        if self.made is None:
            return
        named = [Identity(Role.ENGINE, name) for name in engines]
        # Who calls from elsewhere on this machine shows what lies in `client`.
        others = [Identity(role, role) for role in Role if role is not Role.ENGINE]
        keep_issued(self.made, [Subject(identity) for identity in (*named, *others)])

    async def kept(self, engines: Sequence[str]) -> None:
        """Keeps them while the services run, for ever; who shows them follows."""
        while True:
            await asyncio.sleep(RENEW_S)
            await asyncio.to_thread(self.keep, engines)


def mesh_of(environ: Mapping[str, str], filed: Filed, keys: Path) -> Mesh:
    """What is said counts for all services, since who shows none meets nobody who does.

    Args:
        environ: the launcher's.
        filed: by service.
        keys: the folder of what `tokenway up` makes for this machine.

    Raises:
        BadConfig: services are told different things.
    """
    if not _mtls(environ, filed):
        return Mesh(mtls=False)
    own = [name for name, security in filed.items() if security.get("certificates") is not None]
    shown = environ.get(VARIABLE)
    if not own:
        made = keys / CERTIFICATES
        return Mesh(mtls=True, made=made, shown=made / ADMIN)
    if missing := sorted(filed.keys() - own):
        raise BadConfig(
            f"security.certificates must be set for all services or none: {own[0]}.yaml has it, "
            f"{missing[0]}.yaml not"
        )
    if not shown or shown == NONE:
        raise BadConfig(
            f"{VARIABLE} must name a folder with an administrator's certificate, where services "
            "have security.certificates of their own"
        )
    return Mesh(mtls=True, shown=Path(shown))


def _mtls(environ: Mapping[str, str], filed: Filed) -> bool:
    if text := environ.get(MTLS_VARIABLE):
        try:
            return bool(parsed(MeshSettings, {"mtls": text}, from_text=True)["mtls"])
        except SettingError as error:
            raise BadConfig(f"{MTLS_VARIABLE}: security.{error}") from error
    said = {name: security.get("mtls") for name, security in filed.items()}
    told = {name: mtls for name, mtls in said.items() if isinstance(mtls, bool)}
    if len({*told.values()}) > 1:
        words = ", ".join(f"{name}.yaml says {str(mtls).lower()}" for name, mtls in told.items())
        raise BadConfig(f"security.mtls must be the same for all services: {words}")
    return next(iter(told.values()), MeshSettings().mtls)
