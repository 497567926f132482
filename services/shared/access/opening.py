"""The guard and the quotas that settings ask for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from services.shared.access.address_rules import AddressRules, networks_of
from services.shared.access.denials import Denials
from services.shared.access.followed_file import FollowedFile
from services.shared.access.guard import Guard
from services.shared.access.jwks import BadJwks, Jwks, read_jwks
from services.shared.access.key_file import BadKeyFile, read_keys
from services.shared.access.key_ring import KeyRing
from services.shared.access.loopback import is_loopback
from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.quotas import Quotas
from services.shared.access.settings import JwtSettings, SecuritySettings
from services.shared.access.shared_quotas.store_address import store_address
from services.shared.access.tenant_quotas import TenantQuotas
from services.shared.access.tenants_file import Tenants, read_tenants
from services.shared.access.token_verifier import TokenVerifier
from services.shared.config import BadConfig
from services.shared.tasks import Tasks

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Who is let in, and how much each tenant may use."""

    guard: Guard
    quotas: TenantQuotas


@asynccontextmanager
async def guarding(
    settings: SecuritySettings, host: str, denials: Denials
) -> AsyncIterator[Access]:
    """Follows the files of keys and tenants inside the block.

    Args:
        settings: who may ask.
        host: where the service listens.
        denials: hears of who is refused.

    Raises:
        BadConfig: a file cannot be used, or everybody would be answered beyond this machine.
    """
    _check_open(settings, host)
    try:
        keys, jwks = _key_file(settings.keys_file), _jwks_file(settings.jwt.jwks_file)
        tenants = _tenants_file(settings.tenants_file)
    except (BadKeyFile, BadJwks) as error:
        raise BadConfig(str(error)) from error
    guard = Guard(
        keys=None if keys is None else lambda: keys.value,
        tokens=None if jwks is None else _verifier(settings.jwt, jwks),
        addresses=AddressRules(
            networks_of("allowed_addresses", settings.allowed_addresses),
            networks_of("trusted_proxies", settings.trusted_proxies),
        ),
        denials=denials,
    )

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s is not followed any more; what it said last counts on", name)

    async with Tasks(crashed) as tasks:
        for file in (keys, jwks, tenants):
            if file is not None:
                tasks.start(str(file.path), file.follow())
        clock = asyncio.get_running_loop().time
        own = Quotas(lambda: {} if tenants is None else tenants.value, clock)
        async with _shared(settings.quotas, own) as quotas:
            yield Access(guard, quotas)


@asynccontextmanager
async def _shared(settings: QuotaSettings, own: Quotas) -> AsyncIterator[TenantQuotas]:
    """Its client is asked for where it is needed alone. Raises BadConfig."""
    if settings.redis_url is None:
        yield own
        return
    try:
        from services.shared.access.shared_quotas.opening import sharing_quotas  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadConfig(f"security.quotas.redis_url needs the package {error.name}") from error
    async with sharing_quotas(settings, store_address(settings.redis_url, settings), own) as shared:
        yield shared


def _key_file(path: Path | None) -> FollowedFile[KeyRing] | None:
    if path is None:
        return None
    return FollowedFile(path, lambda path: KeyRing(read_keys(path)), (BadKeyFile,))


def _jwks_file(path: Path | None) -> FollowedFile[Jwks] | None:
    return None if path is None else FollowedFile(path, read_jwks, (BadJwks,))


def _tenants_file(path: Path | None) -> FollowedFile[Tenants] | None:
    return None if path is None else FollowedFile(path, read_tenants, (BadConfig,))


def _verifier(settings: JwtSettings, file: FollowedFile[Jwks]) -> TokenVerifier:
    return TokenVerifier(settings, lambda: file.value)


def _check_open(settings: SecuritySettings, host: str) -> None:
    """On this machine alone whoever is there may ask; beyond it somebody must have meant it."""
    if settings.needs_credentials:
        return
    if not settings.open and not is_loopback(host):
        raise BadConfig(
            f"server.host is {host}, beyond this machine, and nobody would be asked for a key: set "
            "security.keys_file or security.jwt, or security.open to true where others guard it"
        )
    _log.warning("EVERYBODY WHO REACHES %s IS ANSWERED: no security.keys_file, no jwt", host)
