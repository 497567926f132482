"""Processes that share quotas through a real store, as many as a test wants, in this one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.quotas import Quotas
from services.shared.access.shared_quotas.opening import sharing_quotas
from services.shared.access.shared_quotas.shared_quotas import SharedQuotas
from services.shared.access.shared_quotas.store_address import store_address
from services.shared.access.tenant_limits import TenantLimits
from tests.redis_server import RedisServer

TIMEOUT_MS = 5000
"""Nobody waits for it but who tests that somebody does."""


@dataclass(kw_only=True)
class Commons:
    """A store and what tenants may use; `tenants` may be changed."""

    server: RedisServer
    prefix: str
    tenants: dict[str, TenantLimits] = field(default_factory=dict)

    def limit(self, tenant: str, **limits: Any) -> None:
        self.tenants[tenant] = TenantLimits(tenant=tenant, **limits)

    @asynccontextmanager
    async def process(self, **changes: Any) -> AsyncIterator[SharedQuotas]:
        url = f"redis://{self.server.address}"
        given = {"redis_url": url, "key_prefix": self.prefix, "timeout_ms": TIMEOUT_MS, **changes}
        settings = QuotaSettings(**given)
        own = Quotas(lambda: self.tenants, asyncio.get_running_loop().time)
        address = store_address(settings.redis_url or "", settings)
        async with sharing_quotas(settings, address, own) as quotas:
            yield quotas

    def known(self, tenant: str) -> Mapping[str, float]:
        """What the store knows of a tenant."""
        told = self.server.ask("HGETALL", f"{self.prefix}:{{{tenant}}}:state")
        pairs = zip(told[::2], told[1::2], strict=True)
        return {name.decode(): float(value) for name, value in pairs}

    def held(self, tenant: str) -> int:
        """Reservations that the store holds."""
        count: int = self.server.ask("ZCARD", f"{self.prefix}:{{{tenant}}}:held")
        return count

    def leases(self, tenant: str) -> Mapping[str, float]:
        """Reservations that the store holds, each with the end of its lease."""
        told = self.server.ask("ZRANGE", f"{self.prefix}:{{{tenant}}}:held", 0, -1, "WITHSCORES")
        pairs = zip(told[::2], told[1::2], strict=True)
        return {member.decode(): float(until) for member, until in pairs}

    def is_settled(self, tenant: str) -> bool:
        known = self.known(tenant)
        whole = known["reserved"] == known["settled"] + known["refunded"]
        return whole and not known["running"] and not self.held(tenant)
