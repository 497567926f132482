"""What can happen to an engine, or to the way to it, while answers stream."""

from __future__ import annotations

import asyncio

from tokenway.engine.v1.engine_pb2 import DrainRequest
from tokenway.engine.v1.engine_pb2_grpc import EngineServiceStub
from tokenway.router.v1.router_pb2 import DisconnectRequest, DrainReplicaRequest
from tokenway.router.v1.router_pb2_grpc import RouterServiceStub

from services.shared.channel import open_channel
from tests.faults.asked import TOKENS
from tests.faults.trial import Scene
from tests.waiting import until


async def kill(scene: Scene) -> None:
    """The process is gone."""
    scene.victim.kill()


async def restart(scene: Scene) -> None:
    """The process is gone, and another takes its place."""
    scene.victim.kill()
    await asyncio.to_thread(scene.victim.start)


async def kill_router(scene: Scene) -> None:
    """The one process that knows all answers is gone."""
    scene.cluster.router.kill()


async def none(_: Scene) -> None:
    """All is well."""


async def stop(scene: Scene) -> None:
    """The process stands still, and wakes when nobody waits for it any more."""
    further = _further(scene)
    scene.victim.suspend()
    await scene.first.until(further)
    scene.victim.resume()


async def terminate(scene: Scene) -> None:
    """The process is told to end, as by a supervisor."""
    await asyncio.to_thread(scene.victim.service.end)


async def drain(scene: Scene) -> None:
    """The engine is told to take nothing more, and ends when it has nothing."""
    async with open_channel(scene.victim.address) as channel:
        await EngineServiceStub(channel).Drain(DrainRequest())
    await asyncio.to_thread(scene.victim.close)


async def drain_at_router(scene: Scene) -> None:
    """The router is told to take an engine out, and later to use it again."""
    async with open_channel(scene.cluster.router.address) as channel:
        operator = RouterServiceStub(channel)
        request = DrainReplicaRequest(address=scene.cluster.replica(scene.at))
        await operator.DrainReplica(request)
        await until(lambda: not scene.victim.service.describe().load.running)
        request.undo = True
        await operator.DrainReplica(request)


async def disconnect(scene: Scene) -> None:
    """The router is told to cut its session."""
    request = DisconnectRequest(address=scene.cluster.replica(scene.at), duration_ms=200)
    async with open_channel(scene.cluster.router.address) as channel:
        await RouterServiceStub(channel).Disconnect(request)


async def cut(scene: Scene) -> None:
    """Something between them resets the connection."""
    scene.cluster.links[scene.at].cut()


async def silence(scene: Scene) -> None:
    """Nothing comes through, and then all of it, late."""
    further = _further(scene)
    scene.cluster.links[scene.at].hold()
    await scene.first.until(further)
    scene.cluster.links[scene.at].restore()


def _further(scene: Scene) -> int:
    """When the first stream has so many tokens, it goes on elsewhere."""
    return min(scene.first.tokens + 3, TOKENS)


FAULTS = {
    fault.__name__: fault
    for fault in (kill, stop, silence, cut, disconnect, terminate, drain, drain_at_router)
}
"""Those after which all answers go on elsewhere."""
