"""Where callers of a codec come in: one door speaks HTTP, the other gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from services.codec.codec import Codec
from services.codec.http_body import BodyLimits
from services.codec.http_routes import HttpTerms, app
from services.codec.http_server import Door, HttpServer, listening
from services.codec.https import showing
from services.codec.readiness import Ready
from services.codec.reception import Reception
from services.codec.rpc import CodecServicer, denied_call, register
from services.codec.settings import CodecSettings
from services.shared.access.address_rules import is_in, networks_of
from services.shared.access.rpc_guard import RpcGuard
from services.shared.grpc_traffic import Traffic, TrafficMeter
from services.shared.mesh.mesh import Mesh
from services.shared.server import Serving, serving

LAST_WORDS_S = 1.0
"""How long answers that did not end in time have to tell so."""

RPC_SERVICE = "tokenway.codec.v1.CodecService"


@asynccontextmanager
async def http_door(
    settings: CodecSettings, codec: Codec, reception: Reception, ready: Ready
) -> AsyncIterator[HttpServer]:
    """Listens inside the block. Raises BadConfig and CannotListen."""
    server, max_bytes = settings.server, settings.service.limits.max_body_bytes
    terms = HttpTerms(
        health=settings.health,
        body=BodyLimits(max_bytes=max_bytes, timeout_s=server.connections.body_timeout_s),
        allowed_origins=server.allowed_origins,
    )
    application = app(codec, ready, reception, terms)
    proxies = networks_of("trusted_proxies", settings.security.trusted_proxies)
    async with showing(server.tls) as tls:
        door = Door(
            settings=server.connections,
            speaks_for_many=lambda address: is_in(address, proxies),
            tls=tls,
        )
        async with listening(
            application, server.host, server.port, drain_s=LAST_WORDS_S, door=door
        ) as http:
            yield http


def rpc_door(
    settings: CodecSettings, codec: Codec, reception: Reception, mesh: Mesh, traffic: Traffic
) -> AbstractAsyncContextManager[Serving]:
    """Listens inside the block; `traffic` counts what goes through it. Raises CannotListen."""
    servicer = CodecServicer(codec, reception, settings.service.limits.max_body_bytes)
    return serving(
        f"{settings.server.host}:{settings.server.grpc_port}",
        partial(register, servicer),
        [RPC_SERVICE],
        grace_s=LAST_WORDS_S,
        credentials=mesh.door,
        guards=[TrafficMeter(traffic), RpcGuard(reception.guard, denied_call)],
    )
