"""An engine that lends blocks over a real gRPC server, and whose steps a test may hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import grpc
from tokenway.kv.v1 import kv_pb2 as pb
from tokenway.kv.v1.kv_pb2_grpc import KvServiceStub, add_KvServiceServicer_to_server

from services.engine.asking import asked
from services.engine.blocks import BlockPool
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.lending import STALL_S, Lending
from services.engine.kv.memory import BlockMemory
from services.engine.kv.servicer import KvServicer
from services.engine.kv.staging import Staging
from services.engine.loop import EngineLoop
from services.engine.scheduler import Limits
from services.shared.server import serving
from services.shared.stream.generation import Generation, Sampling, Stopping
from services.shared.tls.way import CLEAR, Way
from tests.engine.harness import Harness, simulated
from tests.waiting import until

LAYOUT = "layout"
RULES = PeerSettings(fetches=16)
Answer = TypeVar("Answer")


class HeldSteps:
    """Runs a loop on this thread: commands at once, and steps as a test lets them go on."""

    def __init__(self, loop: EngineLoop) -> None:
        self._loop = loop
        self._may = 0.0

    def step(self, count: float = 1) -> None:
        self._may += count

    def free(self) -> None:
        """From now on nothing waits."""
        self._may = inf

    async def run(self) -> None:
        while not self._loop._stopped:
            self._loop._take_commands()
            self._loop.after_step()
            if self._may and not self._loop.scheduler.idle:
                self._may -= 1
                self._loop.step()
            await asyncio.sleep(0.001)


@dataclass(frozen=True, slots=True)
class Lender:
    harness: Harness
    steps: HeldSteps
    lending: Lending
    memory: BlockMemory
    address: str
    stub: KvServiceStub

    @property
    def pool(self) -> BlockPool:
        return self.harness.parts.pool

    @property
    def loop(self) -> EngineLoop:
        return self.harness.loop

    async def ask(self, question: Callable[[], Answer]) -> Answer:
        return await asked(self.loop, question)

    async def publish(self, blocks: Mapping[bytes, bytes]) -> None:
        """Has these blocks cached, in this order."""

        def publish() -> None:
            taken = self.pool.lease_blank(len(blocks))
            for block, (address, payload) in zip(taken, blocks.items(), strict=True):
                self.memory.write(block, payload)
                self.pool.publish(block, address)
            self.pool.end_lease(taken)

        await self.ask(publish)

    async def generate(self, generation: Generation) -> int:
        """The key of a sequence that now waits."""
        return await self.ask(lambda: self.harness.add(generation))

    async def fetched(self, fetch: pb.FetchRequest) -> list[pb.FetchResponse]:
        return [response async for response in self.stub.Fetch(fetch)]

    async def at_rest(self) -> None:
        """Returns when no block is leased, and the books are right."""
        await until(lambda: not self.pool.leased)
        await self.ask(self.pool.audit)


def prompt(number: int, blocks: int = 8, output: int = 0) -> Generation:
    """A prompt of so many full blocks of 4 tokens, and then `output` tokens."""
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + number, *range(10, 9 + 4 * blocks)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=output),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """How a lender serves: bounds, certificates where it is not in the clear, and the way to it."""

    rules: PeerSettings = RULES
    stall_s: float = STALL_S
    server: grpc.ServerCredentials | None = None
    way: Way = CLEAR


@asynccontextmanager
async def lent(
    memory: BlockMemory | None = None,
    door: Door = Door(),
    *,
    blocks: int = 64,
    held: bool = False,
    staging: Staging | None = None,
) -> AsyncIterator[Lender]:
    """A simulated engine's blocks, or those of `memory`; in the end none is leased.

    Args: held: each step waits for the test.
    """
    parts = simulated(blocks=blocks)
    memory = memory or parts.memory
    engine = Harness(parts, Limits(max_batch_size=8, token_budget=8))
    steps = HeldSteps(engine.loop)
    lending = Lending(engine.loop, memory, LAYOUT, door.rules, door.stall_s, staging=staging)

    def register(server: grpc.aio.Server) -> None:
        add_KvServiceServicer_to_server(KvServicer(lending), server)

    runs = steps.run() if held else asyncio.to_thread(engine.loop.run)
    running = asyncio.ensure_future(runs)
    try:
        async with (
            serving("127.0.0.1:0", register, (), grace_s=0, credentials=door.server) as server,
            door.way.dial(server.address) as channel,
        ):
            lender = Lender(engine, steps, lending, memory, server.address, KvServiceStub(channel))
            yield lender
            steps.free()
        await lender.at_rest()
    finally:
        engine.loop.command(engine.loop.stop)
        await running
