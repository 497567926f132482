"""Whether the step loop lives, told by `grpc.health.v1`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.engine.progress import Progress
from services.shared.health import Health
from services.shared.tasks import Tasks

LOOKS = 10
"""How often the loop is looked at in the time after which it counts as stuck."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def watched(progress: Progress, health: Health, stuck_after_s: float) -> AsyncIterator[None]:
    """Inside the block, an engine that makes no step for so long while work waits is not alive."""

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s ended; the engine counts as it did", name)

    async with Tasks(crashed) as tasks:
        tasks.start("liveness", _watch(progress, health, stuck_after_s))
        yield


async def _watch(progress: Progress, health: Health, stuck_after_s: float) -> None:
    while True:
        alive = progress.age_ms < 1000 * stuck_after_s
        if alive is not health.is_alive:
            _log.warning("step loop %s", "goes on" if alive else f"stuck for {stuck_after_s:g} s")
            await health.tell_alive(alive=alive)
        await asyncio.sleep(stuck_after_s / LOOKS)
