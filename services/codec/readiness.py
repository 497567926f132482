"""Whether the codec can serve, and why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from services.codec.codec import Codec
from services.codec.open_requests import OpenRequests
from services.shared.health import Health, Readiness
from services.shared.tasks import Tasks

WATCH_INTERVAL_S = 0.1

_log = logging.getLogger(__name__)


class Ready:
    """Ready when the engine is there and fits, and nobody told the codec to stop."""

    def __init__(self, codec: Codec, open_requests: OpenRequests, initial_delay_s: float) -> None:
        self._codec = codec
        self._open_requests = open_requests
        self._not_before = monotonic() + initial_delay_s

    @property
    def fault(self) -> str | None:
        if self._open_requests.are_leaving:
            return "the codec is draining"
        if monotonic() < self._not_before:
            return "the codec is starting"
        return self._codec.fault


@asynccontextmanager
async def watched(ready: Ready, health: Health) -> AsyncIterator[None]:
    """Keeps `grpc.health.v1` in step with what the readiness path says, inside the block."""

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s ended; the health of the gRPC door stays as it is", name)

    async with Tasks(crashed) as tasks:
        tasks.start("readiness", _keep(ready, health))
        yield


async def _keep(ready: Ready, health: Health) -> None:
    told: str | None = "nothing was told yet"
    while True:
        fault = ready.fault
        if fault != told:
            _log.info("readiness: %s", fault or "ready")
            if health.readiness is not Readiness.DRAINING:
                await health.set(Readiness.READY if fault is None else Readiness.STARTING)
            told = fault
        await asyncio.sleep(WATCH_INTERVAL_S)
