"""Where the store of shared quotas is, and who we are to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from services.shared.access.quota_settings import QuotaSettings
from services.shared.config import BadConfig
from services.shared.password_file import read_password

PORT = 6379
_KEY = "security.quotas"
_SCHEMES = ("redis", "rediss")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreAddress:
    """Args: password: never shown; is_tls: the server shows a certificate, of `ca_file` if set."""

    host: str
    port: int
    database: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_tls: bool = False
    ca_file: Path | None = None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def store_address(url: str, settings: QuotaSettings) -> StoreAddress:
    """Raises BadConfig naming the key; shows nothing of the URL, which may hold a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad_url() from None
    if parts.scheme not in _SCHEMES or not parts.hostname or parts.query or parts.fragment:
        raise _bad_url()
    is_tls = parts.scheme == "rediss"
    if settings.redis_ca_file is not None:
        _check_authorities(settings.redis_ca_file, is_tls=is_tls)
    return StoreAddress(
        host=parts.hostname,
        port=PORT if port is None else port,
        database=_database(parts.path),
        username=unquote(parts.username) if parts.username else None,
        password=_password(parts, settings.redis_password_file),
        is_tls=is_tls,
        ca_file=settings.redis_ca_file,
    )


def _bad_url() -> BadConfig:
    return BadConfig(
        f"{_KEY}.redis_url must be redis:// or rediss:// and "
        "[user[:password]@]host[:port][/database] (what it is is not shown)"
    )


def _database(path: str) -> int:
    digits = path.removeprefix("/")
    if not digits:
        return 0
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise _bad_url()
    return int(digits)


def _password(parts: SplitResult, path: Path | None) -> str | None:
    if path is None:
        return unquote(parts.password) if parts.password else None
    if parts.password:
        raise BadConfig(f"{_KEY}.redis_password_file must not be set where redis_url has one")
    return read_password(f"{_KEY}.redis_password_file", path)


def _check_authorities(path: Path, *, is_tls: bool) -> None:
    key = f"{_KEY}.redis_ca_file"
    if not is_tls:
        raise BadConfig(f"{key} must not be set where redis_url is not rediss://")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise BadConfig(f"{key} {path} holds no certificate") from error
    except OSError as error:
        raise BadConfig(f"{key} {path} cannot be read: {error.strerror}") from error
