"""Whether a service can serve, told the same way to every asker."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio  # type: ignore[attr-defined]  # stubs lack it

LIVENESS = "liveness"
"""What a probe asks for that wants to know whether the process lives, not whether it can serve."""


class Readiness(Enum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Health:
    """The readiness of one process; drives `grpc.health.v1`, where only READY is SERVING.

    The service named LIVENESS is SERVING whatever the readiness.

    Args:
        services: full names of the gRPC services, which are told beside the server as a whole.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self.readiness = Readiness.STARTING
        self.servicer = aio.HealthServicer()
        self._services = ("", *services)

    async def set(self, readiness: Readiness) -> None:
        self.readiness = readiness
        await self.servicer.set(LIVENESS, health_pb2.HealthCheckResponse.SERVING)
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if readiness is Readiness.READY
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for service in self._services:
            await self.servicer.set(service, status)
