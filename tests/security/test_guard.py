"""Every entry point of a codec with keys, listed from the codec itself, asks for one."""

from __future__ import annotations

from typing import Any, cast

import grpc
import httpx
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from starlette.routing import Route
from tokenway.codec.v1 import codec_pb2

from services.codec.doors import RPC_SERVICE
from services.codec.http_body import BodyLimits
from services.codec.http_routes import HttpTerms, app
from services.shared.channel import open_channel
from services.shared.settings import HealthSettings
from tests.codec_bed import MODEL
from tests.raw_peer import speak
from tests.security.guarded import BODY, Guarded, code_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUTES = [
    (method, route.path.replace("{name:path}", MODEL))
    for route in app(
        cast(Any, None),
        cast(Any, None),
        cast(Any, None),
        HttpTerms(health=HealthSettings(), body=BodyLimits(max_bytes=1, timeout_s=60)),
    ).routes
    if isinstance(route, Route)
    for method in sorted(route.methods or {"*"})
]
OPEN = {(method, path) for method in ("GET", "HEAD") for path in ("/", "/healthz", "/readyz")}
METHODS = list(codec_pb2.DESCRIPTOR.services_by_name["CodecService"].methods)
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
HEALTH = "grpc.health.v1.Health"


async def test_there_are_routes_and_methods_to_look_at() -> None:
    assert {path for _, path in ROUTES} >= {"/v1/messages", "/tokenize", "/v1/models"}
    assert {*ROUTES} >= OPEN
    assert len(METHODS) >= 9


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=[" ".join(route) for route in ROUTES])
async def test_every_route_but_the_open_ones_asks_for_a_key(
    guarded: Guarded, method: str, path: str
) -> None:
    async def answer(**headers: str) -> httpx.Response:
        body = BODY if method == "POST" else None
        return await guarded.client.request(method, path, headers=headers, json=body)

    without, wrong = await answer(), await answer(**{"x-api-key": "x"})
    statuses = {without.status_code, wrong.status_code}
    if (method, path) in OPEN:
        assert statuses == {200}
        return
    assert statuses == {401}
    assert without.headers["www-authenticate"] == "Bearer"
    assert (await answer(**{"x-api-key": guarded.key})).status_code != 401


@pytest.mark.parametrize("path", ["/nothing", "/v1/models/../../x", "/docs", "/healthz/"])
async def test_what_is_not_there_asks_for_a_key_too(guarded: Guarded, path: str) -> None:
    assert (await guarded.client.get(path)).status_code == 401


@pytest.mark.parametrize("method", METHODS, ids=[method.name for method in METHODS])
async def test_every_method_asks_for_a_key(guarded: Guarded, method: MethodDescriptor) -> None:
    path = f"/{method.containing_service.full_name}/{method.name}"
    for shown, is_let_in in (((), False), (("x",), False), ((guarded.key,), True)):
        code = await code_of(guarded.bed, path, tuple(("x-api-key", key) for key in shown))
        assert (code is not grpc.StatusCode.UNAUTHENTICATED) == is_let_in, code


async def test_no_other_service_is_at_the_grpc_door(guarded: Guarded) -> None:
    """All services are methods of ours, health, or reflection, which asks for a key too."""
    path = f"/{REFLECTION}/ServerReflectionInfo"
    assert await code_of(guarded.bed, path, ()) is grpc.StatusCode.UNAUTHENTICATED
    assert await code_of(guarded.bed, f"/{HEALTH}/Check", ()) is grpc.StatusCode.OK
    async with open_channel(guarded.bed.service.grpc) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        call = stub.ServerReflectionInfo(iter([asked]), metadata=(("x-api-key", guarded.key),))
        answer = await call.read()
    names = {service.name for service in answer.list_services_response.service}
    assert names == {RPC_SERVICE, HEALTH, REFLECTION}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/nothing"])
async def test_a_refusal_comes_before_the_body(guarded: Guarded, path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
    heard = await speak(guarded.bed.service.http, head.encode())
    assert heard.startswith(b"HTTP/1.1 401")
