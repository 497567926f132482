"""The server's end: a gRPC server with health, reflection and one place for errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1 import health as grpc_health
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.shared.bug_boundary import BugBoundary
from services.shared.calls import Calls
from services.shared.channel_options import AGING_OPTIONS, SERVER_OPTIONS
from services.shared.health import Health, Readiness

LAST_CALLS_S = 5.0
"""How long calls that were cancelled have to notice."""


class CannotListen(Exception):
    """An address that cannot be bound; the text names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Serving:
    """A server that listens at `address`, with the port that it got."""

    address: str
    health: Health


@asynccontextmanager
async def serving(
    address: str,
    register: Callable[[grpc.aio.Server], None],
    services: Sequence[str],
    *,
    grace_s: float = 5.0,
    credentials: grpc.ServerCredentials | None = None,
    guards: Sequence[grpc.aio.ServerInterceptor[Any, Any]] = (),
) -> AsyncIterator[Serving]:
    """Listens at `address` inside the block; health is STARTING until the caller says more.

    At the end health turns to DRAINING, no call is taken any more, and those that run have
    `grace_s` to end before they are cancelled.

    Args:
        address: `host:port`; port 0 takes a free one.
        register: adds the servicers to the server.
        services: their full names, for health and reflection.
        grace_s: seconds.
        credentials: of TLS; None for connections in the clear.
        guards: what looks at a call before its method; their errors are told like the method's.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    health = Health(services)
    await health.set(Readiness.STARTING)
    calls = Calls()
    aging = () if credentials is None else AGING_OPTIONS
    server = grpc.aio.server(
        interceptors=(calls, BugBoundary(), *guards), options=(*SERVER_OPTIONS, *aging)
    )
    register(server)
    health_pb2_grpc.add_HealthServicer_to_server(health.servicer, server)
    names = (*services, grpc_health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    port = _bind(server, address, credentials)
    await server.start()
    try:
        yield Serving(address=f"{address.rpartition(':')[0]}:{port}", health=health)
    finally:
        await health.set(Readiness.DRAINING)
        await server.stop(grace_s)
        await calls.over(LAST_CALLS_S)


def _bind(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError:
        port = 0
    if not port:
        raise CannotListen(
            f"cannot listen at {address}: the port is taken or the host is not of this machine"
        )
    return port
