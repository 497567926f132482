"""Shared quotas from their settings."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.shared.access.quota_settings import QuotaSettings
from services.shared.access.quotas import Quotas
from services.shared.access.shared_quotas.fallback import fallback_of
from services.shared.access.shared_quotas.shared_quotas import SharedQuotas
from services.shared.access.shared_quotas.store_address import StoreAddress
from services.shared.access.shared_quotas.store_client import StoreClient
from services.shared.access.shared_quotas.store_connection import StoreConnection
from services.shared.access.shared_quotas.store_link import StoreLink
from services.shared.tasks import Tasks


@asynccontextmanager
async def sharing_quotas(
    settings: QuotaSettings, address: StoreAddress, own: Quotas
) -> AsyncIterator[SharedQuotas]:
    """Shares what is counted in `own` inside the block, whether the store answers now or not."""
    timeout_s, name = settings.timeout_ms / 1000, secrets.token_hex(8)
    client = StoreClient(StoreConnection(address), settings.key_prefix, timeout_s, settings.lease_s)
    fallback = fallback_of(settings)
    link = StoreLink(client, str(address), name, timeout_s, fallback.words)
    quotas = SharedQuotas(own, link, fallback, name, asyncio.get_running_loop().time)
    await link.reach()
    try:
        async with Tasks(lambda _name, _error: link.abandon()) as tasks:
            tasks.start("shared quotas", link.run())
            tasks.start("leases of quotas", quotas.renew(settings.lease_s))
            yield quotas
    finally:
        await link.close()
