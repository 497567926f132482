"""What engines say of their caches, and whether their books are right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1.engine_pb2_grpc import EngineServiceStub

from services.shared.channel import open_channel
from tests.waiting import PATIENCE_S

DEVICE, HOST = pb.CACHE_TIER_DEVICE, pb.CACHE_TIER_HOST
PEER, SERVICE = pb.CACHE_TIER_PEER, pb.CACHE_TIER_SERVICE


async def stats_of(address: str) -> pb.GetCacheStatsResponse:
    """Of an engine, whose blocks must sum up; or of a router."""
    async with open_channel(address) as channel:
        stats = await EngineServiceStub(channel).GetCacheStats(pb.GetCacheStatsRequest())
    blocks = stats.blocks
    assert blocks.free + blocks.owned + blocks.leased + blocks.cached == blocks.total, blocks
    return stats


async def tier_of(address: str, tier: pb.CacheTier.ValueType) -> pb.TierStats:
    """What one tier of an engine did; all zero where it has none."""
    stats = await stats_of(address)
    return next((one for one in stats.tiers if one.tier == tier), pb.TierStats(tier=tier))


async def hits(address: str, tier: pb.CacheTier.ValueType) -> int:
    """Blocks that a tier of an engine has given since its start."""
    return (await tier_of(address, tier)).hit_blocks


async def misses(address: str, tier: pb.CacheTier.ValueType) -> dict[int, int]:
    """Blocks that it has not given, by cause."""
    return {one.cause: one.blocks for one in (await tier_of(address, tier)).misses}


async def written(address: str) -> int:
    """Blocks that an engine has written to the service cache."""
    return (await tier_of(address, SERVICE)).written_blocks


async def flush(address: str, *, service: bool = False) -> pb.FlushCacheResponse:
    """Drops what is cached in pool and host memory; in the service cache too, if so asked."""
    async with open_channel(address) as channel:
        return await EngineServiceStub(channel).FlushCache(pb.FlushCacheRequest(service=service))


async def switch(address: str, *, enabled: bool) -> None:
    """Raises grpc.aio.AioRpcError, and AssertionError if the answer is another state."""
    async with open_channel(address) as channel:
        request = pb.SetServiceCacheRequest(enabled=enabled)
        answer = await EngineServiceStub(channel).SetServiceCache(request)
    assert answer.enabled == enabled


async def holds(condition: Callable[[], Awaitable[object]]) -> None:
    """Returns when the condition holds, which asks other processes."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110  # another process's state
            await asyncio.sleep(0.005)


async def at_rest(addresses: Iterable[str]) -> None:
    """Returns when no engine's block is owned or leased any more."""
    for address in addresses:

        async def idle(of: str = address) -> bool:
            blocks = (await stats_of(of)).blocks
            return not blocks.owned and not blocks.leased

        await holds(idle)
