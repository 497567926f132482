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

    The service named LIVENESS is SERVING whatever the readiness, until it is told otherwise.

    Args:
        services: full names of the gRPC services, which are told beside the server as a whole.
    """

    def __init__(self, services: Sequence[str]) -> None:
        self.readiness = Readiness.STARTING
        self.is_alive = True
        self.servicer = aio.HealthServicer()
        self._services = ("", *services)

    async def set(self, readiness: Readiness) -> None:
        self.readiness = readiness
        await self.servicer.set(LIVENESS, _status(serving=self.is_alive))
        for service in self._services:
            await self.servicer.set(service, _status(serving=readiness is Readiness.READY))

    async def tell_alive(self, *, alive: bool) -> None:
        """Whether the process makes progress; one that does not is best begun again."""
        self.is_alive = alive
        await self.servicer.set(LIVENESS, _status(serving=alive))


def _status(*, serving: bool) -> health_pb2.HealthCheckResponse.ServingStatus:
    status = health_pb2.HealthCheckResponse
    return status.SERVING if serving else status.NOT_SERVING
