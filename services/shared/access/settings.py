"""Settings of who may ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.shared.access.address_rules import networks_of
from services.shared.access.quota_settings import QuotaSettings
from services.shared.bounds import within
from services.shared.tls.settings import MeshSettings

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Those whose keys verify and cannot sign: a leaked file of keys lets nobody in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JwtSettings:
    """Tokens that somebody else signs (JWT, RFC 7519); without `jwks_file` none is taken.

    Args:
        jwks_file: the signer's public keys (JWKS); changes are followed.
        issuer: must stand in `iss`.
        audience: must stand in `aud`.
        algorithms: of signatures that count.
        leeway_s: seconds by which the signer's clock may differ from ours.
        tenant_claim: the claim that names the tenant.
    """

    jwks_file: Path | None = None
    issuer: str | None = None
    audience: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    leeway_s: float = 30.0
    tenant_claim: str = "tenant"

    def __post_init__(self) -> None:
        for name, value in (("issuer", self.issuer), ("audience", self.audience)):
            if self.jwks_file is not None and not value:
                raise ValueError(f"{name} must be set where jwks_file is, got {value!r}")
            if self.jwks_file is None and value is not None:
                raise ValueError(f"{name} must not be set without jwks_file")
        if not self.algorithms or not {*self.algorithms} <= {*ALGORITHMS}:
            names = ", ".join(ALGORITHMS)
            raise ValueError(f"algorithms must be some of {names}, got {list(self.algorithms)}")
        within("leeway_s", self.leeway_s, 0, 600)
        if not self.tenant_claim:
            raise ValueError("tenant_claim must not be empty, got ''")


@dataclass(frozen=True, kw_only=True, slots=True)
class SecuritySettings(MeshSettings):
    """Who may ask. With keys or tokens configured nobody is answered without one.

    Args:
        keys_file: API keys, as `tokenway keys` writes them; changes are followed.
        tenants_file: what each tenant may use; changes are followed.
        open: answers everybody, also beyond this machine, where neither keys nor tokens are set.
        allowed_addresses: networks that callers must come from; none named, any.
        trusted_proxies: networks whose `x-forwarded-for` is believed.
        jwt: tokens that somebody else signs.
        quotas: where limits are counted together with other processes.
    """

    keys_file: Path | None = None
    tenants_file: Path | None = None
    open: bool = False
    allowed_addresses: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    jwt: JwtSettings = field(default_factory=JwtSettings)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)

    def __post_init__(self) -> None:
        if self.open and self.needs_credentials:
            raise ValueError("open must be false where keys_file or jwt says who may ask, got true")
        if self.tenants_file is not None and not self.needs_credentials:
            raise ValueError("tenants_file must not be set where nobody is asked for a key")
        if self.quotas.redis_url is not None and self.tenants_file is None:
            raise ValueError("quotas.redis_url must not be set without tenants_file")
        networks_of("allowed_addresses", self.allowed_addresses)
        networks_of("trusted_proxies", self.trusted_proxies)

    @property
    def needs_credentials(self) -> bool:
        return self.keys_file is not None or self.jwt.jwks_file is not None
