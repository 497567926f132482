"""EngineService: what the engine is, how loaded it is, and how it is run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.engine.admission import ServedModel
from services.engine.engine import Engine
from services.engine.kv.cache_stats import stats_of
from services.engine.kv.caches import Caches
from services.engine.settings import Role
from services.shared.stream.load_wire import load_of

if TYPE_CHECKING:
    from typing import Any

    import grpc

    Context = grpc.aio.ServicerContext[Any, Any]

LOAD_INTERVAL_S = 1.0

_ROLES = {
    Role.PREFILL: pb.ROLE_PREFILL,
    Role.DECODE: pb.ROLE_DECODE,
    Role.BOTH: pb.ROLE_BOTH,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What does not change while an engine runs."""

    model: ServedModel
    tokenizer_fingerprint: str
    block_size: int
    device: str
    role: Role = Role.BOTH
    shares_blocks: bool = False


class EngineServicer(rpc.EngineServiceServicer):
    def __init__(self, engine: Engine, caches: Caches, identity: Identity) -> None:
        self._engine = engine
        self._caches = caches
        self._identity = identity

    async def Describe(self, request: pb.DescribeRequest, context: Context) -> pb.DescribeResponse:
        identity, model = self._identity, self._identity.model
        return pb.DescribeResponse(
            model=model.name,
            model_fingerprint=model.fingerprint,
            tokenizer_fingerprint=identity.tokenizer_fingerprint,
            vocabulary_size=model.vocabulary_size,
            context_length=model.context_length,
            role=_ROLES[identity.role],
            block_size=identity.block_size,
            kv_layout_id=model.kv_layout_id,
            device=identity.device,
            load=load_of(self._engine.load()),
            end_of_text_ids=sorted(model.end_of_text_ids),
            shares_blocks=identity.shares_blocks,
        )

    async def WatchLoad(
        self, request: pb.WatchLoadRequest, context: Context
    ) -> AsyncIterator[pb.WatchLoadResponse]:
        while True:
            yield pb.WatchLoadResponse(load=load_of(self._engine.load()))
            await asyncio.sleep(LOAD_INTERVAL_S)

    async def Drain(self, request: pb.DrainRequest, context: Context) -> pb.DrainResponse:
        await self._engine.drain()
        return pb.DrainResponse()

    async def SetServiceCache(
        self, request: pb.SetServiceCacheRequest, context: Context
    ) -> pb.SetServiceCacheResponse:
        await self._caches.set(enabled=request.enabled)
        return pb.SetServiceCacheResponse(enabled=self._caches.switch.enabled)

    async def GetCacheStats(
        self, request: pb.GetCacheStatsRequest, context: Context
    ) -> pb.GetCacheStatsResponse:
        return stats_of(self._caches, self._engine.load())

    async def FlushCache(
        self, request: pb.FlushCacheRequest, context: Context
    ) -> pb.FlushCacheResponse:
        return pb.FlushCacheResponse(
            dropped_blocks=await self._engine.flush_cache(),
            dropped_host_blocks=self._caches.flush_host(),
            dropped_service_blocks=await self._caches.flush_service() if request.service else 0,
        )
