"""What operators do is noted with who did it and what became of it, and nothing else is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.router.v1 import router_pb2, router_pb2_grpc

from services.launcher.keys_command import create_key
from services.router.app import routing
from services.router.replica_spec import ReplicaSpec
from services.router.security_settings import RouterSecurity
from services.router.settings import RouterSettings
from services.shared.audit.admin_calls import DEEDS
from services.shared.channel import open_channel
from services.shared.errors import InvalidRequest
from services.shared.mesh.opening import meshing
from services.shared.mesh.rules import RULES
from services.shared.server import serving
from services.shared.settings import ServerSettings
from services.shared.tls.identity import STREAM_NAME, Role
from services.shared.tls.settings import MeshSettings
from tests.mesh_bed import Certified
from tests.router.fleet_of_servers import servers
from tests.router.servicer import ScriptedEngine
from tests.shared.audit.noted import events_in
from tests.waiting import until

ENGINE, ROUTER = "tokenway.engine.v1.EngineService", "tokenway.router.v1.RouterService"
TRACE = "0af7651916cd43dd8448eb211c80319c"
METADATA = (("x-request-id", "mine\x7e"), ("traceparent", f"00-{TRACE}-b7ad6b7169203331-01"))
READS = {f"/{ENGINE}/{name}" for name in ("Describe", "WatchLoad", "GetCacheStats")} | {
    f"/{ROUTER}/{name}" for name in ("ListReplicas", "Explain")
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_every_method_of_operators_only_reads_or_is_noted() -> None:
    described = (
        engine_pb2.DESCRIPTOR.services_by_name["EngineService"],
        router_pb2.DESCRIPTOR.services_by_name["RouterService"],
    )
    methods = {f"/{one.full_name}/{method.name}" for one in described for method in one.methods}
    assert methods == READS | set(DEEDS)


async def ask(method: Any, request: Any, metadata: Any = ()) -> None:
    """Whatever is answered."""
    with suppress(grpc.aio.AioRpcError):
        await method(request, metadata=metadata)


@asynccontextmanager
async def engine_door(settings: MeshSettings, engine: ScriptedEngine) -> AsyncIterator[str]:
    """The address of an engine's operating methods behind the guards of `settings`."""

    def register(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(engine, server)

    async with (
        meshing(settings, Role.ENGINE, "127.0.0.1") as mesh,
        serving(
            "127.0.0.1:0",
            register,
            [ENGINE],
            grace_s=0,
            credentials=mesh.server,
            guards=mesh.guards(RULES),
        ) as door,
    ):
        yield door.address


async def test_a_certificate_says_who_it_was_and_refusals_are_noted(
    tmp_path: Path, path: Path
) -> None:
    certified = Certified(tmp_path)
    settings = replace(certified.settings(Role.ENGINE), audit_file=path)
    engine = ScriptedEngine(flush_fails=InvalidRequest("no"))
    async with engine_door(settings, engine) as address:
        for role, name in ((Role.ADMIN, "ops"), (Role.CODEC, "c1")):
            async with certified.dial(role, STREAM_NAME, name)(address) as channel:
                stub: Any = engine_pb2_grpc.EngineServiceStub(channel)
                off = engine_pb2.SetServiceCacheRequest(enabled=False)
                await ask(stub.SetServiceCache, off, METADATA)
                await ask(stub.FlushCache, engine_pb2.FlushCacheRequest(service=True))
                await ask(stub.Describe, engine_pb2.DescribeRequest())
    assert engine.switched == [False]
    noted = events_in(path)
    deeds = [one for one in noted if one["action"] != "access"]
    assert [(one["action"], one["what"], one["outcome"], one["who"]) for one in deeds] == [
        ("cache", "off", "done", "spiffe://tokenway/admin/ops"),
        ("cache flush", "also of the service", "InvalidRequest", "spiffe://tokenway/admin/ops"),
        ("cache", "off", "PermissionDenied", "spiffe://tokenway/codec/c1"),
        ("cache flush", "also of the service", "PermissionDenied", "spiffe://tokenway/codec/c1"),
    ]
    assert {one["service"] for one in noted} == {"engine"}
    assert (deeds[0]["request_id"], deeds[0]["trace_id"]) == ("mine~", TRACE)
    refused = [one for one in noted if one["action"] == "access"]
    assert {(one["outcome"], one["who"]) for one in refused} == {("refused", "address:127.0.0.1")}
    assert "codec at tokenway.engine.v1.EngineService/FlushCache" in {
        one["what"] for one in refused
    }


async def test_without_certificates_the_address_is_who_it_was(path: Path) -> None:
    async with (
        engine_door(MeshSettings(mtls=False, audit_file=path), ScriptedEngine()) as address,
        open_channel(address) as channel,
    ):
        stub: Any = engine_pb2_grpc.EngineServiceStub(channel)
        await ask(stub.Drain, engine_pb2.DrainRequest())  # which that engine does not know
    (event,) = events_in(path)
    assert (event["who"], event["action"], event["outcome"]) == (
        "address:127.0.0.1",
        "drain",
        "failed",
    )


@asynccontextmanager
async def operated(security: RouterSecurity) -> AsyncIterator[tuple[Any, str]]:
    """A router's operating methods, and the address of its replica."""
    async with servers(ScriptedEngine()) as fleet:
        (name,) = fleet.addresses
        settings = RouterSettings(
            replicas=(ReplicaSpec.parse(name),), server=ServerSettings(port=0), security=security
        )
        async with routing(settings) as router, open_channel(router.address) as channel:
            await until(router.fleet.ready)
            yield router_pb2_grpc.RouterServiceStub(channel), name


async def test_a_router_notes_what_was_done_to_its_replicas(path: Path) -> None:
    async with operated(RouterSecurity(mtls=False, audit_file=path)) as (stub, name):
        drain, bad = router_pb2.DrainReplicaRequest, "no\nsuch\x1b[31m"
        await ask(stub.DrainReplica, drain(address=name))
        await ask(stub.DrainReplica, drain(address=name, undo=True))
        await ask(stub.SetWeight, router_pb2.SetWeightRequest(address=name, weight=0.5))
        await ask(stub.Disconnect, router_pb2.DisconnectRequest(address=name, duration_ms=1))
        await ask(stub.DrainReplica, drain(address=bad))
        await ask(stub.ListReplicas, router_pb2.ListReplicasRequest())
    assert [(one["action"], one["what"], one["outcome"]) for one in events_in(path)] == [
        ("drain", name, "done"),
        ("undrain", name, "done"),
        ("weight", f"{name} 0.5", "done"),
        ("disconnect", f"{name} for 1 ms", "done"),
        ("drain", r"no\nsuch\x1b[31m", "NotFound"),
    ]


async def test_a_key_says_who_it_was_and_who_has_none_does_nothing(
    tmp_path: Path, path: Path
) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "acme", "")
    request = router_pb2.DrainReplicaRequest(address="a:1")
    async with operated(RouterSecurity(mtls=False, keys_file=keys, audit_file=path)) as (stub, _):
        await ask(stub.DrainReplica, request, (("x-api-key", key.text),))
        await ask(stub.DrainReplica, request)
    deed, refused = events_in(path)
    assert (deed["who"], deed["what"], deed["outcome"]) == (f"key:{key.key_id}", "a:1", "NotFound")
    assert (refused["action"], refused["what"]) == ("access", "no key")
