"""EngineService of a replica for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as engine_rpc

from services.shared.errors import FailedPrecondition, ServiceError, Unavailable
from services.shared.stream.servicer import TokenStreamServicer
from tests.scripted_source import ScriptedSource

MODEL = "test-model"


@dataclass
class ScriptedEngine(engine_rpc.EngineServiceServicer):
    """What a test decides about an engine, and what was done to it; `door` stands on the wire."""

    source: ScriptedSource = field(default_factory=ScriptedSource)
    door: TokenStreamServicer | None = None
    model: str = MODEL
    version: str = "weights"
    tokenizer: str = "tokenizer-1"
    has_cache: bool = True
    cached_blocks: int = 3
    described: bool = True
    flush_fails: ServiceError | None = None
    switch_fails: ServiceError | None = None
    switched: list[bool] = field(default_factory=list)
    role: pb.Role.ValueType = pb.ROLE_BOTH
    block_size: int = 0

    async def Describe(self, request: Any, context: Any) -> pb.DescribeResponse:
        if not self.described:
            raise Unavailable("loading")
        return pb.DescribeResponse(
            model=self.model,
            model_fingerprint=self.version,
            tokenizer_fingerprint=self.tokenizer,
            vocabulary_size=1000,
            context_length=4096,
            role=self.role,
            block_size=self.block_size,
            end_of_text_ids=[2],
        )

    async def WatchLoad(self, request: Any, context: Any) -> AsyncIterator[pb.WatchLoadResponse]:
        raise NotImplementedError
        yield

    async def Drain(self, request: Any, context: Any) -> pb.DrainResponse:
        raise NotImplementedError

    async def SetServiceCache(self, request: Any, context: Any) -> pb.SetServiceCacheResponse:
        if request.enabled and not self.has_cache:
            raise FailedPrecondition("no service cache is configured")
        if self.switch_fails is not None:
            raise self.switch_fails
        self.switched.append(request.enabled)
        return pb.SetServiceCacheResponse(enabled=request.enabled)

    async def GetCacheStats(self, request: Any, context: Any) -> pb.GetCacheStatsResponse:
        blocks = pb.BlockCounts(cached=self.cached_blocks, total=self.cached_blocks)
        enabled = not self.switched or self.switched[-1]
        return pb.GetCacheStatsResponse(enabled=enabled, type="none", blocks=blocks)

    async def FlushCache(self, request: Any, context: Any) -> pb.FlushCacheResponse:
        if self.flush_fails is not None:
            raise self.flush_fails
        return pb.FlushCacheResponse(dropped_blocks=self.cached_blocks)
