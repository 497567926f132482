"""What `grpc.health.v1` of a router tells while its only replica comes and goes."""

from __future__ import annotations

from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.router.app import SERVICES
from services.shared.channel import open_channel
from services.shared.health import LIVENESS
from tests.router.fleet_of_servers import router_over, servers
from tests.router.servicer import ScriptedEngine

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.parametrize("service", ["", *SERVICES])
async def test_readiness_follows_the_replicas_and_liveness_does_not(service: str) -> None:
    async with (
        servers(ScriptedEngine()) as fleet,
        router_over(fleet.addresses) as (router, _),
        open_channel(router.address) as channel,
    ):
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service=service))
        seen = [(await watch.read()).status]
        if seen == [NOT_SERVING]:
            seen = [(await watch.read()).status]
        await fleet.kill(0)
        seen.append((await watch.read()).status)
        alive = await health.Check(health_pb2.HealthCheckRequest(service=LIVENESS))
        await fleet.start(0)
        seen.append((await watch.read()).status)
        watch.cancel()
    assert seen == [SERVING, NOT_SERVING, SERVING]
    assert alive.status == SERVING
