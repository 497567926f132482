"""The quotas of all tenants."""

from __future__ import annotations

from collections.abc import Callable

from services.shared.access.quota import Quota
from services.shared.access.tenant_limits import EVERY_OTHER, NO_LIMITS, TenantLimits
from services.shared.access.tenants_file import Tenants

SIZE = 10_000
"""From so many on those that are at rest are forgotten."""


class Quotas:
    """Makes a quota when its tenant first comes.

    Args:
        tenants: all limits now.
        now: seconds, from any beginning.
    """

    def __init__(
        self, tenants: Callable[[], Tenants], now: Callable[[], float], size: int = SIZE
    ) -> None:
        self._tenants = tenants
        self._now = now
        self._size = size
        self._quotas: dict[str | None, Quota] = {}

    def of(self, tenant: str | None) -> Quota:
        """Of one tenant, with the limits that it has now; None: who needs no key has no limits."""
        limits = NO_LIMITS if tenant is None else self._limits(tenant)
        quota = self._quotas.get(tenant)
        if quota is None:
            self._forget()
            quota = self._quotas[tenant] = Quota(limits, self._now)
        elif quota.limits != limits:
            quota.change(limits)
        return quota

    def _limits(self, tenant: str) -> TenantLimits:
        tenants = self._tenants()
        return tenants.get(tenant) or tenants.get(EVERY_OTHER) or NO_LIMITS

    def _forget(self) -> None:
        """Tenants may be as many as whoever signs tokens names."""
        if len(self._quotas) >= self._size:
            busy = {name: quota for name, quota in self._quotas.items() if not quota.is_at_rest}
            self._quotas = busy
            self._size = max(self._size, 2 * len(busy))
