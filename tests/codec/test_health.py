"""What `grpc.health.v1` of a codec tells while the engine behind it drains and comes back."""

from __future__ import annotations

from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.codec.doors import RPC_SERVICE
from services.shared.channel import open_channel
from services.shared.health import LIVENESS
from services.shared.stream.load import ReplicaState
from tests.codec_bed import BedMaker

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", RPC_SERVICE])
async def test_readiness_follows_the_engine_and_liveness_does_not(
    beds: BedMaker, service: str
) -> None:
    engine = beds.engine(beds.says("fine"))
    async with beds.bed(engine) as bed, open_channel(bed.service.grpc) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service=service))
        seen = [(await watch.read()).status]
        if seen == [NOT_SERVING]:
            seen = [(await watch.read()).status]
        engine.state = ReplicaState.DRAINING
        seen.append((await watch.read()).status)
        alive = await health.Check(health_pb2.HealthCheckRequest(service=LIVENESS))
        engine.state = ReplicaState.READY
        seen.append((await watch.read()).status)
        watch.cancel()
    assert seen == [SERVING, NOT_SERVING, SERVING]
    assert alive.status == SERVING
