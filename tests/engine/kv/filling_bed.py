"""An engine whose prompts enter by way of given supplies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from services.engine.admission import Admission
from services.engine.asking import asked
from services.engine.engine import Engine
from services.engine.kv.device_tier import DeviceTier
from services.engine.kv.figures import Figures, new_figures
from services.engine.kv.filling import Filler
from services.engine.kv.supply import Supply
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.engine.loop import EngineLoop, Results
from services.engine.nvml import DeviceMonitor
from services.engine.parts import Parts
from services.engine.scheduler import Limits, Scheduler
from services.engine.stopping import Stopper
from services.shared.stream.generation import Generation
from services.shared.stream.load import ReplicaState
from services.shared.tasks import Tasks
from tests.engine.asked import Asked, ask
from tests.engine.harness import LIMITS, TIMEOUT_MS


@dataclass(eq=False)
class Bed:
    engine: Engine
    loop: EngineLoop
    filler: Filler
    figures: Figures = field(default_factory=new_figures)

    def ask(self, generation: Generation) -> Asked:
        return ask(self.engine, generation)

    async def finish(self, *generations: Generation) -> list[Asked]:
        """Asks all at once and waits until they have finished."""
        all_asked = [self.ask(generation) for generation in generations]
        for one in all_asked:
            await one.finished()
        return all_asked

    async def leased(self) -> int:
        return await asked(self.loop, lambda: self.loop.scheduler.pool.leased)

    async def flush(self) -> None:
        await self.engine.flush_cache()


@asynccontextmanager
async def filling(
    parts: Parts, supplies: Sequence[Supply], limits: Limits = LIMITS
) -> AsyncIterator[Bed]:
    """In the end nothing is leased, and the pool's books are right."""
    home = asyncio.get_running_loop()

    def publish(results: Results) -> None:
        home.call_soon_threadsafe(engine.deliver, results)

    stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
    loop = EngineLoop(Scheduler(parts.pool, limits), parts.runner, stopper, publish)
    figures = new_figures()
    device = DeviceTier(figures[Tier.DEVICE], parts.pool.size, 1000)
    loop.scheduler.keeper = device
    parts.pool.on_evict = lambda _, address: device.evicted(address)
    crashes: list[Exception] = []
    thread = asyncio.ensure_future(asyncio.to_thread(loop.run))
    try:
        async with Tasks(lambda _, error: crashes.append(error)) as tasks:
            filler = Filler(
                loop, parts.memory, supplies, figures=figures, switch=CacheSwitch(), tasks=tasks
            )
            admission = Admission(parts.model, TIMEOUT_MS)
            engine = Engine(admission, loop, DeviceMonitor(0), 1000, entry=filler)
            engine.state = ReplicaState.READY
            yield Bed(engine, loop, filler, figures)
        filler.close()
    finally:
        loop.command(loop.stop)
        await thread
    parts.pool.audit()
    assert parts.pool.leased == 0
    assert not crashes
