"""An engine whose step loop is stuck says that it is not alive, and takes it back."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.engine.liveness import watched
from services.engine.loop import EngineLoop
from services.shared.channel import open_channel
from services.shared.health import LIVENESS, Readiness
from services.shared.server import serving
from tests.engine.harness import simulated
from tests.engine.served import served
from tests.recorder import Recorder, submission
from tests.waiting import PATIENCE_S, until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


ASKED = health_pb2.HealthCheckRequest(service=LIVENESS)


@asynccontextmanager
async def health_of(loop: EngineLoop) -> AsyncIterator[Any]:
    """The health service of an engine whose loop counts as stuck after a tenth of a second."""
    async with (
        serving("127.0.0.1:0", lambda _: None, [], grace_s=0) as door,
        watched(loop.progress, door.health, 0.1),
        open_channel(door.address) as channel,
    ):
        await door.health.set(Readiness.READY)
        yield health_pb2_grpc.HealthStub(channel)


async def test_a_loop_without_a_step_while_work_waits_is_not_alive_until_it_goes_on() -> None:
    gate, recorder = threading.Event(), Recorder()

    def hold() -> None:
        gate.wait(PATIENCE_S)

    async with served(simulated()) as engine, health_of(engine.loop) as health:
        watch = health.Watch(ASKED)
        assert (await watch.read()).status == SERVING
        engine.engine.submit(submission("x", recorder, max_tokens=400))
        engine.loop.command(hold)
        try:
            assert (await watch.read()).status == NOT_SERVING
            assert (await health.Check(health_pb2.HealthCheckRequest())).status == SERVING
        finally:
            gate.set()
        assert (await watch.read()).status == SERVING
        await until(lambda: recorder.ids)
        watch.cancel()


async def test_a_loop_that_has_nothing_to_do_is_alive() -> None:
    async with served(simulated()) as engine, health_of(engine.loop) as health:
        progress = engine.loop.progress
        await until(lambda: time.monotonic_ns() - progress.last_step_ns > 300_000_000)
        assert (await health.Check(ASKED)).status == SERVING
