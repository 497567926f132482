"""HTTPS: the certificate that the HTTP door shows, and another when its files are replaced."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from services.codec.settings import TlsSettings
from services.shared.access.followed_file import FollowedFile
from services.shared.config import BadConfig
from services.shared.tasks import Tasks

_log = logging.getLogger(__name__)


class Https:
    """What a server shows; `context` is for as long as it lives.

    Each handshake takes the certificate as it is then; connections from before go on with theirs.
    While one file is replaced and the other is not yet, what was counts on.

    Raises:
        BadConfig: the files cannot be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self.context = self._current = _context(certificate, key)
        self.context.sni_callback = self._take_current
        self.files = [FollowedFile(path, self._read, (BadConfig,)) for path in self._paths]

    def _read(self, _: Path) -> None:
        """Both: one of them has changed."""
        self._current = _context(*self._paths)

    def _take_current(self, handshake: Any, *_: object) -> None:
        """Called for each handshake, whether or not it names a server."""
        handshake.context = self._current


@asynccontextmanager
async def showing(settings: TlsSettings) -> AsyncIterator[ssl.SSLContext | None]:
    """Follows the files inside the block; without any there is no context.

    Raises BadConfig where they cannot be used.
    """
    if settings.certificate is None or settings.key is None:
        yield None
        return
    https = Https(settings.certificate, settings.key)
    async with Tasks(_not_followed) as tasks:
        for file in https.files:
            tasks.start(str(file.path), file.follow())
        yield https.context


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Raises BadConfig."""
    _check_certificate(certificate)
    _check_key(key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password="")  # or it would ask
    except (OSError, ValueError) as error:
        raise BadConfig(f"server.tls.key: {key} is not the key of {certificate}") from error
    return context


def _check_certificate(path: Path) -> None:
    try:
        first = x509.load_pem_x509_certificates(_bytes("certificate", path))[0]
    except ValueError as error:
        raise BadConfig(f"server.tls.certificate: {path} holds no certificate in PEM") from error
    if first.not_valid_after_utc <= datetime.now(UTC):
        _log.error("%s has expired: callers do not trust it", path)


def _check_key(path: Path) -> None:
    try:
        load_pem_private_key(_bytes("key", path), None)
    except (TypeError, UnsupportedAlgorithm, ValueError) as error:
        raise BadConfig(f"server.tls.key: {path} holds no key in PEM without a password") from error


def _bytes(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadConfig(f"server.tls.{setting}: {path} cannot be read: {error.strerror}") from error


def _not_followed(path: str, _: Exception) -> None:
    _log.error("%s is not followed any more; what it held last is shown on", path)
