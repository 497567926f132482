"""Engine and router are told to stop: what a client of theirs sees, in order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.shared.channel import open_channel
from services.shared.errors import Code
from services.shared.health import LIVENESS
from services.shared.model_folder import ModelFolder
from services.shared.stream.client_session import ClientSession
from services.shared.stream.events import Failed, Finished
from services.shared.stream.generation import Stopping
from services.shared.stream.load import ReplicaState
from services.shared.stream.source import Submission
from tests.integration.stack import PATIENCE_S, Launcher, Service, Settings, merged, simulated
from tests.recorder import Recorder, generation
from tests.stream_server import Watched, client
from tests.waiting import until

TOKENS = 150
SETTLES: Settings = {"service": {"limits": {"settle_s": 3600}}}

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def started(session: ClientSession, name: str, max_tokens: int) -> Recorder:
    recorder = Recorder()
    stopping = Stopping(max_tokens=max_tokens, ignore_eos=True)
    wanted = replace(generation(name), stopping=stopping)
    session.submit(Submission(wanted, "", recorder))
    return recorder


async def first_refusal(session: ClientSession) -> Failed:
    async with asyncio.timeout(PATIENCE_S):
        for number in count():
            end = await started(session, f"more{number}", 1).ended()
            if isinstance(end, Failed):
                return end
    raise AssertionError


async def health_of(address: str, service: str = "") -> int:
    async with open_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)


async def leaves_in_order(service: Service) -> None:
    """The service settles for an hour unless it is told twice."""
    watched, address = Watched(), service.grpc

    def state() -> ReplicaState | None:
        load = watched.loads[-1]
        return load.state if load is not None else None

    async with client(address, watched) as session:
        await until(lambda: state() is ReplicaState.READY)
        assert await health_of(address) == SERVING
        running = started(session, "running", TOKENS)
        await running.until(2)
        service.process.terminate()
        await until(lambda: state() is ReplicaState.DRAINING)
        assert await health_of(address) == NOT_SERVING
        assert isinstance(await started(session, "late", 3).ended(), Finished)
        assert await health_of(address, LIVENESS) == SERVING
        service.process.terminate()
        refusal = await first_refusal(session)
        assert (refusal.code, refusal.retryable) == (Code.UNAVAILABLE, True)
        assert await health_of(address, LIVENESS) == SERVING
        assert isinstance(await running.ended(), Finished)
        assert len(running.ids) == TOKENS
    assert await asyncio.to_thread(service.process.wait, PATIENCE_S) == 0


async def test_an_engine_leaves_in_order(launcher: Launcher, model_folder: ModelFolder) -> None:
    slow = simulated(model_folder, simulation={"step_us": 20_000})
    with launcher.running("engine", merged(slow, SETTLES)) as engine:
        await leaves_in_order(engine)


async def test_a_router_leaves_in_order(launcher: Launcher, model_folder: ModelFolder) -> None:
    slow = simulated(model_folder, simulation={"step_us": 20_000})
    with (
        launcher.running("engine", slow) as engine,
        launcher.running("router", {"replicas": [engine.grpc], **SETTLES}) as router,
    ):
        await leaves_in_order(router)
