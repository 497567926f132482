"""Certificates of a mesh for tests: an authority, and who shows what it has signed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import grpc

from services.launcher.certs.authority import Authority
from services.launcher.certs.issued import issue
from services.launcher.certs.subject import subject
from services.shared.tls.certificate_files import Certificates
from services.shared.tls.dial import Dial, dialling
from services.shared.tls.identity import Role
from services.shared.tls.server_credentials import mutual
from services.shared.tls.settings import MeshSettings
from services.shared.tls.way import Way

LIFE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FixedWay:
    """A way whose certificates do not change."""

    how: Dial
    version: int = 0

    def dial(self, address: str) -> grpc.aio.Channel:
        return self.how(address)

    async def worn(self, version: int) -> None:  # noqa: ARG002  # there is one alone
        await asyncio.Event().wait()


class Certified:
    """What an authority has signed, each in a folder of its own below `folder`."""

    def __init__(self, folder: Path, authority: Authority | None = None) -> None:
        self.authority = authority or Authority.new()
        self._folder = folder

    def folder(self, role: Role, name: str = "one", life: timedelta = LIFE) -> Path:
        """Of a new certificate."""
        folder = self._folder / f"{role}-{name}"
        issue(self.authority, subject(role, name), folder, life)
        return folder

    def files(self, role: Role, name: str = "one", life: timedelta = LIFE) -> Certificates:
        return self.authority.issue(subject(role, name), life)

    def settings(self, role: Role, name: str = "one") -> MeshSettings:
        return MeshSettings(mtls=True, certificates=self.folder(role, name))

    def dial(self, role: Role, to: str, name: str = "one") -> Dial:
        """How one of that role calls servers named `to`."""
        files = self.files(role, name)
        return dialling(lambda: files, to)

    def way(self, role: Role, to: str) -> Way:
        return FixedWay(self.dial(role, to))

    def server(self, role: Role) -> grpc.ServerCredentials:
        files = self.files(role)
        return mutual(lambda: files)
