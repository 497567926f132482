"""An engine put together from its parts and settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.kv.v1 import kv_pb2, kv_pb2_grpc
from tokenway.stream.v1 import stream_pb2, stream_pb2_grpc

from services.engine.admission import Admission
from services.engine.block_feed import BlockFeed
from services.engine.engine import Engine
from services.engine.grammar_queue import GrammarQueue
from services.engine.kv.cache_settings import Sharing
from services.engine.kv.caches import Caches, open_caches
from services.engine.kv.servicer import KvServicer
from services.engine.loop import EngineLoop, Results
from services.engine.nvml import DeviceMonitor
from services.engine.parts import Parts
from services.engine.rpc import EngineServicer, Identity
from services.engine.scheduler import Limits, Scheduler
from services.engine.settings import EngineSettings
from services.engine.stopping import Stopper
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import BlockSource
from services.shared.tls.way import Way

SERVICES = tuple(
    module.DESCRIPTOR.services_by_name[name].full_name
    for module, name in (
        (stream_pb2, "TokenStreamService"),
        (engine_pb2, "EngineService"),
        (kv_pb2, "KvService"),
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembly:
    """An engine and what belongs to it."""

    engine: Engine
    loop: EngineLoop
    caches: Caches
    identity: Identity
    monitor: DeviceMonitor

    def register(self, server: grpc.aio.Server, blocks: BlockSource | None = None) -> None:
        """Adds the services; they tell of the engine's blocks, or of those of `blocks`."""
        source = TokenStreamServicer(self.engine, blocks or BlockFeed(self.loop))
        stream_pb2_grpc.add_TokenStreamServiceServicer_to_server(source, server)
        engine_pb2_grpc.add_EngineServiceServicer_to_server(
            EngineServicer(self.engine, self.caches, self.identity), server
        )
        kv_pb2_grpc.add_KvServiceServicer_to_server(KvServicer(self.caches.lending), server)


@asynccontextmanager
async def assembled(parts: Parts, settings: EngineSettings, way: Way) -> AsyncIterator[Assembly]:
    """An engine whose loop does not run yet; its results come to this thread's event loop.

    End the loop before the block ends.

    Args: way: to other engines.

    Raises:
        BadConfig: a cache cannot be as the settings want it.
    """
    home = asyncio.get_running_loop()
    limits, cache = settings.service.limits, settings.cache

    def publish(results: Results) -> None:
        home.call_soon_threadsafe(engine.deliver, results)

    loop = _loop(parts, settings, publish)
    shares_blocks = cache.sharing is Sharing.GLOBAL
    monitor = DeviceMonitor(settings.executor.accelerator_group[0])
    async with open_caches(cache, parts, loop, way) as caches:
        grammars = None if parts.grammars is None else GrammarQueue(parts.grammars)
        engine = Engine(
            Admission(parts.model, limits.request_timeout_ms, shares_blocks=shares_blocks),
            loop,
            monitor,
            limits.max_concurrency,
            grammars,
            entry=caches.filler,
        )
        identity = Identity(
            model=parts.model,
            tokenizer_fingerprint=parts.tokenizer_fingerprint,
            block_size=parts.pool.size,
            device=parts.device,
            role=settings.executor.role,
            shares_blocks=shares_blocks,
        )
        try:
            yield Assembly(
                engine=engine, loop=loop, caches=caches, identity=identity, monitor=monitor
            )
        finally:
            if grammars is not None:
                grammars.close()


def _loop(parts: Parts, settings: EngineSettings, publish: Callable[[Results], None]) -> EngineLoop:
    batching = settings.service.batching
    limits = Limits(max_batch_size=batching.max_batch_size, token_budget=batching.token_budget)
    stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
    return EngineLoop(
        Scheduler(parts.pool, limits),
        parts.runner,
        stopper,
        publish,
        wait_ns=int(batching.max_wait_ms * 1_000_000),
    )
