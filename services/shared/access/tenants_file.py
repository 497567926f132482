"""Tenants and their limits in a YAML file: a list `tenants`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.shared.access.tenant_limits import TenantLimits
from services.shared.config import load

Tenants = Mapping[str, TenantLimits]
"""By name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantsFile:
    """What stands in the file."""

    tenants: tuple[TenantLimits, ...]

    def __post_init__(self) -> None:
        names = [entry.tenant for entry in self.tenants]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"tenants must name each tenant once, got {twice!r} twice")


def read_tenants(path: Path) -> Tenants:
    """Raises BadConfig for an unknown key, a wrong type, a value out of bounds, a name twice."""
    return {entry.tenant: entry for entry in load(TenantsFile, path, {}, {}).tenants}
