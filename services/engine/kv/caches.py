"""The tiers beyond an engine's pool, put together, and taken apart in the end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from services.engine.kv.cache_settings import CacheSettings, CacheType
from services.engine.kv.device_tier import DeviceTier
from services.engine.kv.figures import Figures, TierFigures, new_figures
from services.engine.kv.filling import Filler
from services.engine.kv.host_tier import HostTier
from services.engine.kv.keepers import Keepers
from services.engine.kv.lending import Lending
from services.engine.kv.mooncake import staging_of
from services.engine.kv.peer_supply import PeerSupply
from services.engine.kv.service_tier import ServiceTier, open_service
from services.engine.kv.staging import Staging
from services.engine.kv.supply import Supply
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.engine.kv.traced_supply import TracedSupply
from services.engine.loop import EngineLoop
from services.engine.parts import Parts
from services.shared.config import BadConfig
from services.shared.tasks import Tasks
from services.shared.tls.way import Way

REMEMBERED = 65_536
"""Addresses of blocks that gave way, for telling why a block is not there."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caches:
    """What of the tiers others use.

    Args:
        host: None where the engine keeps no blocks of its own beyond its pool.
        service: None where there is no service cache.
        lending: of this engine's blocks to others.
    """

    type: CacheType
    switch: CacheSwitch
    figures: Figures
    filler: Filler
    host: HostTier | None
    service: ServiceTier | None
    lending: Lending

    async def set(self, *, enabled: bool) -> None:
        """Switches what lies outside; off, no write is on its way after a second at the latest."""
        self.switch.set(enabled=enabled)
        if not enabled and self.service is not None:
            await self.service.quiet()

    def flush_host(self) -> int:
        """Drops the blocks of host memory and tells how many."""
        return 0 if self.host is None else self.host.clear()

    async def flush_service(self) -> int:
        """Drops the blocks of the service cache and tells how many; raises Unavailable."""
        return 0 if self.service is None else await self.service.flush()


@asynccontextmanager
async def open_caches(
    settings: CacheSettings, parts: Parts, loop: EngineLoop, way: Way
) -> AsyncIterator[Caches]:
    """The tiers, between the step loop and what is served. Enter it before the loop runs.

    At its end nothing is fetched, copied or written any more; the loop may still run.

    Args: way: to other engines.

    Raises:
        BadConfig: `cache.host_bytes` holds no block, the store cannot be as it is wanted, or other
            engines' memory cannot be read.
    """
    switch, figures = CacheSwitch(enabled=settings.enabled), new_figures()
    async with AsyncExitStack() as stack:
        host = _host(settings, parts, figures)
        if host is not None:
            stack.callback(host.close)
        staging = staging_of(settings.peer, parts.memory.block_bytes)
        peer = _peer(settings, parts, switch, figures[Tier.PEER], way=way, staging=staging)
        stack.push_async_callback(peer.close)
        service = await stack.enter_async_context(
            open_service(settings, parts, loop, switch=switch, figures=figures[Tier.SERVICE])
        )
        _hear_of_blocks(parts, loop, figures, host, service)
        tasks = Tasks(_crashed)
        supplies = _supplies(host, peer, service)
        filler = Filler(loop, parts.memory, supplies, figures=figures, switch=switch, tasks=tasks)
        stack.callback(filler.close)
        await stack.enter_async_context(tasks)
        yield Caches(
            type=settings.type,
            switch=switch,
            figures=figures,
            filler=filler,
            host=host,
            service=service,
            lending=_lending(settings, parts, loop, filler, staging),
        )


def _host(settings: CacheSettings, parts: Parts, figures: Figures) -> HostTier | None:
    size, needed = settings.host_bytes, parts.memory.block_bytes
    if not size:
        return None
    if size < needed:
        raise BadConfig(f"cache.host_bytes must be 0 or >= {needed}, a block's bytes, got {size}")
    return HostTier(parts.memory, size, figures[Tier.HOST])


def _peer(
    settings: CacheSettings,
    parts: Parts,
    switch: CacheSwitch,
    figures: TierFigures,
    *,
    way: Way,
    staging: Staging | None,
) -> PeerSupply:
    layout_id, block_bytes = parts.model.kv_layout_id, parts.memory.block_bytes
    return PeerSupply(
        layout_id, block_bytes, switch, figures, settings.peer, way=way, staging=staging
    )


def _supplies(host: HostTier | None, peer: PeerSupply, service: ServiceTier | None) -> list[Supply]:
    """In the order in which they are asked."""
    reader = None if service is None else service.reader
    return [TracedSupply(supply) for supply in (host, peer, reader) if supply is not None]


def _lending(
    settings: CacheSettings,
    parts: Parts,
    loop: EngineLoop,
    filler: Filler,
    staging: Staging | None,
) -> Lending:
    layout_id, coming = parts.model.kv_layout_id, filler.coming
    return Lending(loop, parts.memory, layout_id, settings.peer, staging=staging, coming=coming)


def _hear_of_blocks(
    parts: Parts,
    loop: EngineLoop,
    figures: Figures,
    host: HostTier | None,
    service: ServiceTier | None,
) -> None:
    device = DeviceTier(figures[Tier.DEVICE], parts.pool.size, REMEMBERED)

    def evicted(block: int, address: bytes) -> None:
        device.evicted(address)
        if host is not None:
            pool = parts.pool
            host.keep(block, address, pool.tenant_of(block), pinned=pool.is_pinned(block))

    parts.pool.on_evict = evicted
    writers = [] if service is None else [service.writer]
    loop.scheduler.keeper = Keepers(device, *writers)


def _crashed(name: str, _: Exception) -> None:
    """The sequence has entered all the same."""
    _log.error("%s ended; what it had not brought is computed", name)
