"""How nodes of a store are reached: limits, who we are, and whether by TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from services.engine.kv.cache_settings import DistributedSettings, TlsSettings
from services.shared.config import BadConfig
from services.shared.password_file import read_password

_KEY = "cache.distributed"


@dataclass(frozen=True, kw_only=True, slots=True)
class RedisAccess:
    """Args: password: never shown; connections: to one node, at a time."""

    timeout_s: float
    connections: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: TlsSettings = field(default_factory=TlsSettings)


def access_of(settings: DistributedSettings) -> RedisAccess:
    """Reads the password and looks at the files. Raises BadConfig naming the key."""
    _check_tls(settings.tls)
    if settings.username is not None and settings.password_file is None:
        raise BadConfig(f"{_KEY}.password_file must be set when username is")
    path = settings.password_file
    return RedisAccess(
        timeout_s=settings.timeout_s,
        connections=settings.connections,
        username=settings.username,
        password=None if path is None else read_password(f"{_KEY}.password_file", path),
        tls=settings.tls,
    )


def _check_tls(tls: TlsSettings) -> None:
    files = {"ca_file": tls.ca_file, "cert_file": tls.cert_file, "key_file": tls.key_file}
    given = [name for name, path in files.items() if path is not None]
    if given and not tls.enabled:
        raise BadConfig(f"{_KEY}.tls.enabled must be true when {given[0]} is set")
    if tls.key_file is not None and tls.cert_file is None:
        raise BadConfig(f"{_KEY}.tls.cert_file must be set when key_file is")
    for name in given:
        _check_readable(f"{_KEY}.tls.{name}", files[name])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file is not None:
        try:
            context.load_verify_locations(tls.ca_file)
        except ssl.SSLError as error:
            raise BadConfig(f"{_KEY}.tls.ca_file {tls.ca_file} holds no certificate") from error
    if tls.cert_file is not None:
        try:
            context.load_cert_chain(tls.cert_file, tls.key_file)
        except ssl.SSLError as error:
            raise BadConfig(
                f"{_KEY}.tls.cert_file {tls.cert_file} and key_file do not fit: {error.reason}"
            ) from error


def _check_readable(key: str, path: Path | None) -> None:
    try:
        if path is not None:
            path.read_bytes()
    except OSError as error:
        raise BadConfig(f"{key} {path} cannot be read: {error.strerror}") from error
