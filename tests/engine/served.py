"""A simulated engine behind a real gRPC server on a free port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc
from tokenway.engine.v1.engine_pb2_grpc import EngineServiceStub
from tokenway.kv.v1.kv_pb2_grpc import KvServiceStub
from tokenway.stream.v1.stream_pb2_grpc import TokenStreamServiceStub

from services.engine.assembly import assembled
from services.engine.engine import Engine
from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.caches import Caches
from services.engine.loop import EngineLoop
from services.engine.parts import Parts
from services.engine.scheduler import Limits
from services.engine.settings import (
    BatchingSettings,
    EngineSettings,
    ExecutorSettings,
    LimitSettings,
    Role,
    ServiceSettings,
)
from services.shared.channel import open_channel
from services.shared.server import serving
from services.shared.stream.load import ReplicaState
from services.shared.stream.source import BlockSource
from services.shared.tls.way import CLEAR
from tests.engine.harness import LIMITS


@dataclass(frozen=True, slots=True)
class Served:
    engine: Engine
    loop: EngineLoop
    caches: Caches
    address: str
    channel: grpc.aio.Channel

    @property
    def stream(self) -> TokenStreamServiceStub:
        return TokenStreamServiceStub(self.channel)

    @property
    def service(self) -> EngineServiceStub:
        return EngineServiceStub(self.channel)

    @property
    def kv(self) -> KvServiceStub:
        return KvServiceStub(self.channel)


@asynccontextmanager
async def served(
    parts: Parts,
    limits: Limits = LIMITS,
    max_concurrency: int = 1000,
    *,
    address: str = "127.0.0.1:0",
    blocks: BlockSource | None = None,
    cache: CacheSettings | None = None,
    role: Role = Role.BOTH,
) -> AsyncIterator[Served]:
    """An engine that tells of its blocks, or of those that `blocks` claims.

    In the end the books of its pool are right.
    """
    settings = EngineSettings(
        executor=ExecutorSettings(model_path=Path(), role=role),
        service=ServiceSettings(
            batching=BatchingSettings(
                max_batch_size=limits.max_batch_size, token_budget=limits.token_budget
            ),
            limits=LimitSettings(max_concurrency=max_concurrency),
        ),
        cache=cache or CacheSettings(),
    )
    async with assembled(parts, settings, CLEAR) as assembly:
        engine, loop = assembly.engine, assembly.loop
        thread = asyncio.ensure_future(asyncio.to_thread(loop.run))
        register = partial(assembly.register, blocks=blocks)
        try:
            async with serving(address, register, (), grace_s=0) as server:
                engine.state = ReplicaState.READY
                async with open_channel(server.address) as channel:
                    yield Served(engine, loop, assembly.caches, server.address, channel)
        finally:
            loop.command(loop.stop)
            await thread
            parts.pool.audit()
