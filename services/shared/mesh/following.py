"""Our certificate as it is now."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from services.shared.access.followed_file import INTERVAL_S, FollowedFile
from services.shared.tls.certificate_files import BadCertificates, Certificates
from services.shared.tls.identity import Role
from services.shared.tls.own_certificate import OwnCertificate, own_certificate


class FollowedCertificate:
    """Follows a folder; one that breaks leaves what was.

    Attributes:
        version: counts what was read.

    Raises:
        BadCertificates: when made, the folder cannot be used.
    """

    def __init__(self, folder: Path, role: Role) -> None:
        self._folder = FollowedFile(folder, partial(own_certificate, role=role), (BadCertificates,))
        self._changed = asyncio.Event()
        self.version = 0

    @property
    def value(self) -> OwnCertificate:
        return self._folder.value

    def files(self) -> Certificates:
        """Of any thread."""
        return self._folder.value.files

    async def follow(self) -> None:
        """Looks every second, for ever, in another thread: file systems may be slow."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            before = self._folder.value
            await asyncio.to_thread(self._folder.look)
            if self._folder.value is not before:
                self._tell()

    async def after(self, version: int) -> None:
        """Returns once another one counts."""
        while self.version == version:
            await self._changed.wait()

    def _tell(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
