"""The quotas of all tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from services.shared.access.quota import Quota, Reservation
from services.shared.access.tenant_limits import EVERY_OTHER, NO_LIMITS, TenantLimits
from services.shared.access.tenants_file import Tenants
from services.shared.errors import ServiceError

SIZE = 10_000
"""From so many on those that are at rest are forgotten."""


class Quotas:
    """`TenantQuotas` of this process alone: makes a quota when its tenant first comes.

    Args:
        tenants: all limits now.
        now: seconds, from any beginning.
    """

    def __init__(
        self, tenants: Callable[[], Tenants], now: Callable[[], float], size: int = SIZE
    ) -> None:
        self._tenants = tenants
        self._now = now
        self.is_shared = None
        self.questions: Mapping[str, int] = {}
        self._size = size
        self._quotas: dict[str | None, Quota] = {}

    def of(self, tenant: str | None, divided_by: int = 1) -> Quota:
        """Of one tenant, with the limits that it has now; None: who needs no key has no limits.

        `divided_by`: how many processes have them together, each its part.
        """
        limits = self.limits_of(tenant).divided(divided_by)
        quota = self._quotas.get(tenant)
        if quota is None:
            self._forget()
            quota = self._quotas[tenant] = Quota(limits, self._now)
        elif quota.limits != limits:
            quota.change(limits)
        return quota

    def refusal(self, tenant: str | None) -> ServiceError | None:
        return self.of(tenant).refusal()

    async def enter(self, tenant: str | None) -> None:
        self.of(tenant).enter()

    @asynccontextmanager
    async def reserve(
        self, tenant: str | None, tokens: int, generations: int
    ) -> AsyncIterator[Reservation]:
        with self.of(tenant).reserve(tokens, generations) as reservation:
            yield reservation

    def limits_of(self, tenant: str | None) -> TenantLimits:
        if tenant is None:
            return NO_LIMITS
        tenants = self._tenants()
        return tenants.get(tenant) or tenants.get(EVERY_OTHER) or NO_LIMITS

    def _forget(self) -> None:
        """Tenants may be as many as whoever signs tokens names."""
        if len(self._quotas) >= self._size:
            busy = {name: quota for name, quota in self._quotas.items() if not quota.is_at_rest}
            self._quotas = busy
            self._size = max(self._size, 2 * len(busy))
