"""Every hop between real services refuses who shows no certificate of ours, or a wrong role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tokenway.codec.v1 import codec_pb2
from tokenway.codec.v1.codec_pb2_grpc import CodecServiceStub
from tokenway.engine.v1 import engine_pb2
from tokenway.kv.v1 import kv_pb2
from tokenway.router.v1 import router_pb2
from tokenway.stream.v1 import stream_pb2

from services.engine.assembly import SERVICES as ENGINE_SERVICES
from services.router.app import SERVICES as ROUTER_SERVICES
from services.shared.channel_options import CLIENT_OPTIONS
from services.shared.mesh.rules import FOR_CLIENTS, RULES
from services.shared.model_folder import ModelFolder
from services.shared.tls.certificate_files import Certificates
from services.shared.tls.dial import Dial, dialling, in_the_clear
from services.shared.tls.identity import STREAM_NAME, Role
from tests.integration.stack import Launcher, Service, Stack, simulated, stack_of
from tests.mesh_bed import Certified
from tests.metrics_scrape import scraped
from tests.waiting import PATIENCE_S

HEALTH = "grpc.health.v1.Health/Check"


@dataclass(frozen=True, kw_only=True)
class CertifiedStack:
    stack: Stack
    certified: Certified

    def service(self, place: str) -> Service:
        return self.stack.router if place == "router" else self.stack.engines[0]

    def door(self, place: str) -> str:
        return self.service(place).grpc

    def refused(self, place: str) -> float:
        """Calls that were refused for their role, as its metrics tell."""
        return scraped(self.service(place)).of("tokenway_access_refused_total", cause="role")


@pytest.fixture(scope="module")
def certified_stack(
    model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CertifiedStack]:
    """An engine, a router and a codec with certificates, as real processes."""
    folder = tmp_path_factory.mktemp("mesh")
    certified = Certified(folder / "certificates")
    launcher = Launcher(folder=folder, environ={}, certified=certified)
    with stack_of(launcher, [simulated(model_folder)], model_folder) as stack:
        yield CertifiedStack(stack=stack, certified=certified)


def test_a_chat_goes_over_all_hops(certified_stack: CertifiedStack) -> None:
    stack = certified_stack.stack
    body = stack.chat(max_tokens=3)
    answer = httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=PATIENCE_S).json()
    assert answer["usage"]["completion_tokens"] == 3


def shows_nothing(ca: bytes) -> Dial:
    """TLS, and no certificate of its own."""

    def dial(address: str) -> grpc.aio.Channel:
        named = (*CLIENT_OPTIONS, ("grpc.ssl_target_name_override", STREAM_NAME))
        return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(ca), options=named)

    return dial


def foreign(ca: bytes, folder: Path) -> Dial:
    """An administrator of another authority, who trusts the server."""
    ours = Certified(folder).files(Role.ADMIN)
    shown = Certificates(ca=ca, chain=ours.chain, key=ours.key)
    return dialling(lambda: shown, STREAM_NAME)


@pytest.mark.parametrize("place", ["engine", "router"])
@pytest.mark.parametrize("shown", ["nothing at all", "no certificate", "a foreign one", "an old"])
async def test_who_shows_no_certificate_of_ours_is_not_heard(
    certified_stack: CertifiedStack, tmp_path: Path, place: str, shown: str
) -> None:
    certified = certified_stack.certified
    ca = certified.files(Role.ADMIN).ca
    expired = certified.files(Role.ADMIN, life=timedelta(seconds=-60))
    dials: dict[str, Dial] = {
        "nothing at all": in_the_clear,
        "no certificate": shows_nothing(ca),
        "a foreign one": foreign(ca, tmp_path),
        "an old": dialling(lambda: expired, STREAM_NAME),
    }
    address = certified_stack.door(place)
    async with dials[shown](address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=PATIENCE_S
            )
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    async with certified.dial(Role.CLIENT, STREAM_NAME)(address) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=PATIENCE_S
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_server_of_another_role_or_authority_is_not_spoken_to(
    certified_stack: CertifiedStack, tmp_path: Path
) -> None:
    certified = certified_stack.certified
    address = certified_stack.door("engine")
    for dial in (
        certified.dial(Role.ADMIN, "router.tokenway"),
        Certified(tmp_path).dial(Role.ADMIN, STREAM_NAME),
    ):
        async with dial(address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health_pb2_grpc.HealthStub(channel).Check(
                    health_pb2.HealthCheckRequest(), timeout=PATIENCE_S
                )
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_the_codecs_door_speaks_tls_and_asks_for_keys_not_for_certificates(
    certified_stack: CertifiedStack,
) -> None:
    address = certified_stack.stack.codec.grpc
    ca = certified_stack.certified.files(Role.CODEC).ca
    named = (*CLIENT_OPTIONS, ("grpc.ssl_target_name_override", "codec.tokenway"))
    trusting = grpc.ssl_channel_credentials(ca)
    async with grpc.aio.secure_channel(address, trusting, options=named) as channel:
        answer = await CodecServiceStub(channel).ListModels(
            codec_pb2.ListModelsRequest(), timeout=PATIENCE_S
        )
    assert certified_stack.stack.model.encode() in answer.data
    async with in_the_clear(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await CodecServiceStub(channel).ListModels(
                codec_pb2.ListModelsRequest(), timeout=PATIENCE_S
            )
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


SERVED = {"engine": ENGINE_SERVICES, "router": ROUTER_SERVICES}
METHODS = [
    (place, f"{service.full_name}/{method.name}")
    for place, names in SERVED.items()
    for module in (stream_pb2, engine_pb2, kv_pb2, router_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    if service.full_name in names
    for method in service.methods
]
REFLECTION = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
ALL = [*METHODS, ("engine", REFLECTION), ("router", REFLECTION)]


@pytest.mark.parametrize(("place", "method"), ALL, ids=[f"{at}-{name}" for at, name in ALL])
async def test_a_method_refuses_the_roles_that_have_no_business_with_it(
    certified_stack: CertifiedStack, place: str, method: str
) -> None:
    rules = RULES if place == "engine" else FOR_CLIENTS
    refused = {*Role} - rules.get(method, frozenset({Role.ADMIN}))
    assert refused, "no method is for everybody"
    before = certified_stack.refused(place)
    for role in refused:
        dial = certified_stack.certified.dial(role, STREAM_NAME)
        async with dial(certified_stack.door(place)) as channel:
            call: Any = channel.unary_stream(f"/{method}", None, None)(b"", timeout=PATIENCE_S)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert caught.value.details() == f"{method} is not for the role {role}"
    assert certified_stack.refused(place) == before + len(refused)


@pytest.mark.parametrize("role", [Role.ROUTER, Role.CLIENT, Role.CODEC, Role.ADMIN])
async def test_blocks_are_for_engines_alone(certified_stack: CertifiedStack, role: Role) -> None:
    layout = certified_stack.stack.engines[0].describe().kv_layout_id
    request = kv_pb2.LookupRequest(kv_layout_id=layout)
    address = certified_stack.door("engine")

    async def looked_up(by: Role) -> kv_pb2.LookupResponse:
        async with certified_stack.certified.dial(by, "engine.tokenway")(address) as channel:
            lookup = channel.unary_unary(
                "/tokenway.kv.v1.KvService/Lookup",
                kv_pb2.LookupRequest.SerializeToString,
                kv_pb2.LookupResponse.FromString,
            )
            answer: kv_pb2.LookupResponse = await lookup(request, timeout=PATIENCE_S)
            return answer

    assert (await looked_up(Role.ENGINE)).incarnation
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await looked_up(role)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
