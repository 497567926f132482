"""Whose a client's requests are is told by its certificate or its key, and never by themselves."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from tokenway.engine.v1 import engine_pb2
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc
from tokenway.types.v1 import types_pb2 as types

from services.launcher.keys_command import create_key
from services.router.app import routing
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.router.settings import RouterSettings
from services.shared.settings import MetricsSettings, ServerSettings
from services.shared.tls.dial import Dial, in_the_clear
from services.shared.tls.identity import Role, server_name
from tests.mesh_bed import Certified
from tests.scripted_engine import ScriptedEngine, serving_engine
from tests.waiting import PATIENCE_S, until

DESCRIBES = engine_pb2.DescribeResponse(model="m", model_fingerprint="v", block_size=16)
FORGED = "somebody-else"
TENANTS = [None, FORGED, ""]


def request(tenant: str | None) -> pb.GenerateRequest:
    return pb.GenerateRequest(
        request_id="r",
        prompt_ids=[1],
        stopping=types.Stopping(max_tokens=1),
        quality_of_service=types.QualityOfService(tenant=tenant),
    )


@dataclass(frozen=True, slots=True)
class Door:
    """A router, and the engine behind it that hears whose generations come."""

    address: str
    engine: ScriptedEngine
    metrics: str

    async def refused(self) -> dict[str, float]:
        """How often whom, by the cause, as metrics tell."""
        async with httpx.AsyncClient() as client:
            told = (await client.get(f"http://{self.metrics}/metrics")).text
        counted = re.findall(r'\ntokenway_access_refused_total\{cause="(\w+)"\} (\S+)', told)
        return {cause: float(count) for cause, count in counted if float(count)}

    async def asked(self, dial: Dial, tenant: str | None, key: str | None = None) -> str | None:
        """As whose the engine hears of a generation that says it is of `tenant`."""
        metadata = () if key is None else (("authorization", f"Bearer {key}"),)
        async with dial(self.address) as channel:
            stub: Any = rpc.TokenStreamServiceStub(channel)
            call = stub.Generate(request(tenant), timeout=PATIENCE_S, metadata=metadata)
            assert [event.WhichOneof("event") async for event in call][-1] == "finished"
        return self.engine.generations[-1].quality_of_service.tenant

    async def asked_in_session(
        self, dial: Dial, tenant: str | None, key: str | None = None
    ) -> str | None:
        """The same by the other door."""
        metadata = () if key is None else (("x-api-key", key),)
        heard = len(self.engine.generations)
        async with dial(self.address) as channel:
            stub: Any = rpc.TokenStreamServiceStub(channel)
            call = stub.Session(timeout=PATIENCE_S, metadata=metadata)
            submit = pb.Submit(stream_id=1, request=request(tenant))
            await call.write(pb.SessionRequest(submit=submit))
            await until(lambda: len(self.engine.generations) > heard)
            call.cancel()
        return self.engine.generations[-1].quality_of_service.tenant


@asynccontextmanager
async def door_of(certified: Certified | None, keys: Path | None = None) -> AsyncIterator[Door]:
    engine = ScriptedEngine(script=lambda _: [[5]], describes=DESCRIBES)
    credentials = None if certified is None else certified.server(Role.ENGINE)
    folder = None if certified is None else certified.folder(Role.ROUTER)
    security = RouterSecurity(mtls=certified is not None, certificates=folder, keys_file=keys)
    async with serving_engine(engine, credentials=credentials) as replica:
        settings = RouterSettings(
            replicas=(ReplicaSpec.parse(replica),),
            server=ServerSettings(port=0),
            metrics=MetricsSettings(port=0),
            security=security,
        )
        async with routing(settings) as router:
            await until(router.fleet.ready)
            yield Door(router.address, engine, router.metrics["metrics"])


def router_way(certified: Certified, role: Role, name: str = "one") -> Dial:
    return certified.dial(role, server_name(Role.ROUTER), name)


async def test_a_client_is_the_tenant_that_its_certificate_names(tmp_path: Path) -> None:
    certified = Certified(tmp_path)
    acme = router_way(certified, Role.CLIENT, "acme")
    async with door_of(certified) as door:
        for tenant in TENANTS:
            assert await door.asked(acme, tenant) == "acme"
            assert await door.asked_in_session(acme, tenant) == "acme"


@pytest.mark.parametrize("role", [Role.CODEC, Role.ROUTER, Role.ADMIN])
async def test_services_are_believed_whose_requests_they_send_on(
    tmp_path: Path, role: Role
) -> None:
    certified = Certified(tmp_path)
    dial = router_way(certified, role)
    async with door_of(certified, keys_of(tmp_path)[0]) as door:
        for tenant in TENANTS:
            assert await door.asked(dial, tenant) == tenant
            assert await door.asked_in_session(dial, tenant) == tenant


def keys_of(folder: Path) -> tuple[Path, str]:
    """A file of keys, and one of the tenant `acme`."""
    path = folder / "keys.json"
    return path, create_key(path, "acme", "k").text


async def test_where_there_are_keys_a_client_shows_one_and_is_its_tenant(tmp_path: Path) -> None:
    certified = Certified(tmp_path)
    path, key = keys_of(tmp_path)
    dial = router_way(certified, Role.CLIENT, "by-certificate")
    async with door_of(certified, path) as door:
        for tenant in TENANTS:
            assert await door.asked(dial, tenant, key) == "acme"
            assert await door.asked_in_session(dial, tenant, key) == "acme"
        heard = len(door.engine.generations)
        for wrong in (None, key[:-1] + ("a" if key[-1] != "a" else "b")):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await door.asked(dial, FORGED, wrong)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert len(door.engine.generations) == heard
        with pytest.raises(grpc.aio.AioRpcError):
            await door.asked(router_way(certified, Role.ENGINE), FORGED)
        assert await door.refused() == {"no_key": 1, "unknown_key": 1, "role": 1}


async def test_in_the_clear_a_router_with_keys_asks_everybody_for_one(tmp_path: Path) -> None:
    path, key = keys_of(tmp_path)
    async with door_of(None, path) as door:
        assert await door.asked(in_the_clear, FORGED, key) == "acme"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await door.asked(in_the_clear, FORGED)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert await door.refused() == {"no_key": 1}
