"""A simulated engine behind a real gRPC server on a free port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from tokenway.engine.v1.engine_pb2_grpc import (
    EngineServiceStub,
    add_EngineServiceServicer_to_server,
)
from tokenway.stream.v1.stream_pb2_grpc import (
    TokenStreamServiceStub,
    add_TokenStreamServiceServicer_to_server,
)

from services.engine.admission import Admission
from services.engine.block_feed import BlockFeed
from services.engine.engine import Engine
from services.engine.grammar_queue import GrammarQueue
from services.engine.loop import EngineLoop, Results
from services.engine.nvml import DeviceMonitor
from services.engine.parts import Parts
from services.engine.rpc import EngineServicer, Identity
from services.engine.scheduler import Limits, Scheduler
from services.engine.stopping import Stopper
from services.shared.channel import open_channel
from services.shared.server import serving
from services.shared.stream.load import ReplicaState
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import BlockSource
from tests.engine.harness import LIMITS, TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class Served:
    engine: Engine
    loop: EngineLoop
    address: str
    channel: grpc.aio.Channel

    @property
    def stream(self) -> TokenStreamServiceStub:
        return TokenStreamServiceStub(self.channel)

    @property
    def service(self) -> EngineServiceStub:
        return EngineServiceStub(self.channel)


@asynccontextmanager
async def served(
    parts: Parts,
    limits: Limits = LIMITS,
    max_concurrency: int = 1000,
    *,
    address: str = "127.0.0.1:0",
    blocks: BlockSource | None = None,
) -> AsyncIterator[Served]:
    """An engine that tells of its blocks, or of those that `blocks` claims."""
    home = asyncio.get_running_loop()

    def publish(results: Results) -> None:
        home.call_soon_threadsafe(engine.deliver, results)

    stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
    loop = EngineLoop(Scheduler(parts.pool, limits), parts.runner, stopper, publish)
    grammars = None if parts.grammars is None else GrammarQueue(parts.grammars)
    engine = Engine(
        Admission(parts.model, TIMEOUT_MS), loop, DeviceMonitor(0), max_concurrency, grammars
    )
    identity = Identity(
        model=parts.model,
        tokenizer_fingerprint=parts.tokenizer_fingerprint,
        block_size=parts.pool.size,
        device=parts.device,
    )

    def register(server: grpc.aio.Server) -> None:
        add_TokenStreamServiceServicer_to_server(
            TokenStreamServicer(engine, blocks or BlockFeed(loop)), server
        )
        add_EngineServiceServicer_to_server(EngineServicer(engine, identity), server)

    thread = asyncio.ensure_future(asyncio.to_thread(loop.run))
    try:
        async with serving(address, register, (), grace_s=0) as server:
            engine.state = ReplicaState.READY
            async with open_channel(server.address) as channel:
                yield Served(engine, loop, server.address, channel)
    finally:
        if grammars is not None:
            grammars.close()
        loop.command(loop.stop)
        await thread
