"""Settings of access that contradict themselves stop the start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.settings import JwtSettings, SecuritySettings

FILE = Path("x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"jwks_file": FILE, "audience": "a"}, "issuer must be set"),
        ({"jwks_file": FILE, "issuer": "i", "audience": ""}, "audience must be set"),
        ({"issuer": "i"}, "issuer must not be set without jwks_file"),
        ({"algorithms": ("none",)}, "algorithms must be some of"),
        ({"algorithms": ("HS256",)}, "got .*HS256"),
        ({"algorithms": ()}, "algorithms must be some of"),
        ({"leeway_s": -1}, "leeway_s must be between 0 and 600"),
        ({"tenant_claim": ""}, "tenant_claim must not be empty"),
    ],
)
def test_tokens(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        JwtSettings(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keys_file": FILE, "open": True}, "open must be false"),
        ({"tenants_file": FILE}, "tenants_file must not be set"),
        (
            {"keys_file": FILE, "quotas": QuotaSettings(redis_url="redis://store")},
            "redis_url must not be set without tenants_file",
        ),
        ({"allowed_addresses": ("x",)}, "allowed_addresses must be networks"),
        ({"trusted_proxies": ("x",)}, "trusted_proxies must be networks"),
    ],
)
def test_security(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        SecuritySettings(**given)
