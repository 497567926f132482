"""Which role gets past the guard to which method, of all methods that the contracts have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tokenway.engine.v1 import engine_pb2
from tokenway.kv.v1 import kv_pb2
from tokenway.router.v1 import router_pb2
from tokenway.stream.v1 import stream_pb2

from services.shared.access.denials import Denials
from services.shared.mesh.role_guard import RoleGuard
from services.shared.mesh.rules import FOR_CLIENTS, RULES, Rules
from services.shared.server import serving
from services.shared.tls.identity import Role, server_name
from tests.mesh_bed import Certified
from tests.waiting import PATIENCE_S

METHODS = [
    f"{service.full_name}/{method.name}"
    for module in (stream_pb2, engine_pb2, kv_pb2, router_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
UNNAMED = "tokenway.engine.v1.EngineService/Unheard"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
HEALTH = "grpc.health.v1.Health/Check"

SENDS, RUNS = {"codec", "router", "admin"}, {"router", "admin"}
MAY: dict[str, set[str]] = {
    "TokenStreamService/Generate": SENDS,
    "TokenStreamService/Session": SENDS,
    "EngineService/Describe": SENDS,
    "EngineService/WatchLoad": SENDS,
    "EngineService/Drain": RUNS,
    "EngineService/SetServiceCache": RUNS,
    "EngineService/FlushCache": RUNS,
    "EngineService/GetCacheStats": RUNS,
    "KvService/Lookup": {"engine"},
    "KvService/Fetch": {"engine"},
    "KvService/Release": {"engine"},
}
"""What is not here is an administrator's."""

CLIENTS_MAY = {
    "TokenStreamService/Generate",
    "TokenStreamService/Session",
    "EngineService/Describe",
}


def test_each_method_of_each_service_is_named_in_the_rules() -> None:
    assert {*METHODS} <= {*RULES}
    assert {*RULES} == {*FOR_CLIENTS}


class _Anything(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in stubs only
    """Answers every method that is not served otherwise."""

    def service(self, _: Any) -> grpc.RpcMethodHandler[Any, Any]:
        return grpc.stream_stream_rpc_method_handler(self._answer)

    async def _answer(self, _: Any, __: Any) -> AsyncIterator[bytes]:
        yield b"past"


async def allowed(certified: Certified, rules: Rules, role: Role) -> set[str]:
    """The methods that let one of that role past; of each other, that it tells why it does not."""
    denials = Denials(asyncio.get_running_loop())
    past: set[str] = set()
    refusals: dict[str, tuple[grpc.StatusCode, str | None]] = {}
    async with (
        serving(
            "127.0.0.1:0",
            lambda server: server.add_generic_rpc_handlers((_Anything(),)),
            (),
            grace_s=0,
            credentials=certified.server(Role.ENGINE),
            guards=[RoleGuard(rules, denials)],
        ) as door,
        certified.dial(role, server_name(Role.ENGINE))(door.address) as channel,
    ):
        for method in (*METHODS, UNNAMED, REFLECTION, HEALTH):
            call: Any = channel.unary_stream(f"/{method}", None, None)(b"", timeout=PATIENCE_S)
            try:
                await call.read()
                past.add(method)
            except grpc.aio.AioRpcError as error:
                refusals[method] = (error.code(), error.details())
            finally:
                call.cancel()
    denials.close()
    assert refusals == {
        method: (grpc.StatusCode.PERMISSION_DENIED, f"{method} is not for the role {role}")
        for method in refusals
    }
    return past


@pytest.mark.parametrize("role", Role)
async def test_each_role_may_call_what_it_needs_and_nothing_else(
    role: Role, tmp_path: Path
) -> None:
    wanted = {
        method
        for method in (*METHODS, UNNAMED)
        if role in MAY.get(method.removeprefix("tokenway.").split(".v1.")[1], {"admin"})
    }
    wanted |= {HEALTH} | ({REFLECTION} if role is Role.ADMIN else set())
    certified = Certified(tmp_path)
    assert await allowed(certified, RULES, role) == wanted
    if role is Role.CLIENT:
        also = {name for name in METHODS if name.split(".v1.")[1] in CLIENTS_MAY}
        assert await allowed(certified, FOR_CLIENTS, role) == wanted | also
    else:
        assert await allowed(certified, FOR_CLIENTS, role) == wanted


async def test_who_is_refused_is_logged_once_and_then_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certified = Certified(tmp_path)
    await allowed(certified, {}, Role.ENGINE)
    lines = [record for record in caplog.records if record.message == "access refused"]
    causes = [record.__dict__["fields"]["cause"] for record in lines]
    assert sorted(causes) == sorted(
        f"engine at {name}" for name in (*METHODS, UNNAMED, REFLECTION, HEALTH)
    )
