"""Settings of who may call a router."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from services.shared.access.settings import JwtSettings, SecuritySettings
from services.shared.tls.settings import MeshSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSecurity(MeshSettings):
    """Certificates tell services apart; where there are keys or tokens, clients show one, too.

    Args:
        keys_file: API keys, as `tokenway keys` writes them; changes are followed.
        jwt: tokens that somebody else signs.
    """

    keys_file: Path | None = None
    jwt: JwtSettings = field(default_factory=JwtSettings)

    @property
    def callers(self) -> SecuritySettings | None:
        """What callers show beside a certificate; None where the certificate is enough."""
        shown = SecuritySettings(keys_file=self.keys_file, jwt=self.jwt)
        return shown if shown.needs_credentials else None
