"""Shares of tenants against each other's."""

from __future__ import annotations

from collections.abc import Mapping

MAX_REMEMBERED = 2048


class TenantWeights:
    """As our settings name them; of others as the last generation told; else 1.

    Args:
        named: those of our settings, which no generation changes.
    """

    def __init__(self, named: Mapping[str, float]) -> None:
        self._named = named
        self._told: dict[str, float] = {}

    def of(self, tenant: str) -> float:
        named = self._named.get(tenant)
        return self._told.get(tenant, 1.0) if named is None else named

    def hear(self, tenant: str, weight: float | None) -> None:
        """A generation of a tenant tells its weight, or that it has none."""
        if tenant in self._named:
            return
        self._told.pop(tenant, None)
        if weight is None:
            return
        if len(self._told) >= MAX_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[tenant] = weight
