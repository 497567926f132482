"""The page of what is open to whom, beside what services that run serve."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.launcher.plan import Plan, module_of
from services.launcher.up_options import up_options
from services.shared.mesh.rules import FOR_CLIENTS, RULES
from services.shared.tls.identity import Role
from tests.codec_bed import MODEL
from tests.integration.stack import PATIENCE_S, Stack
from tests.security.test_guard import OPEN, ROUTES

PAGE = Path(__file__).parents[2] / "docs/inventory.md"
EVERYBODY, CALLERS, ADMINISTRATORS = "everybody", "callers", "admin"
HEALTH = "grpc.health.v1.Health"

Row = tuple[str, ...]


def table(title: str) -> list[Row]:
    """The rows below a heading, without the two that name its columns."""
    _, _, after = PAGE.read_text().partition(f"\n## {title}\n")
    section, _, _ = after.partition("\n## ")
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [tuple(cell.strip(" `") for cell in row) for row in rows[2:]]


def test_every_path_is_on_the_page_with_who_may_ask() -> None:
    told = [(method, path, who) for method, path, who in table("HTTP")]
    served = [
        (method, path.replace(MODEL, "{name}"), EVERYBODY if (method, path) in OPEN else CALLERS)
        for method, path in ROUTES
    ]
    assert sorted(told) == sorted(served)


def reflected(address: str) -> Iterator[str]:
    """`package.Service/Method` of all that a server says it has."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)

        def answer(**asked: str) -> Any:
            request = reflection_pb2.ServerReflectionRequest(**asked)
            return next(iter(stub.ServerReflectionInfo(iter([request]), timeout=PATIENCE_S)))

        for service in answer(list_services="").list_services_response.service:
            found = answer(file_containing_symbol=service.name).file_descriptor_response
            for raw in found.file_descriptor_proto:
                file = FileDescriptorProto.FromString(raw)
                for one in file.service:
                    if f"{file.package}.{one.name}" == service.name:
                        yield from (f"{service.name}/{method.name}" for method in one.method)


def who_may(place: str, method: str) -> str:
    """As the doors decide it: callers by a key, all others by their roles."""
    if method.startswith(HEALTH):
        return EVERYBODY
    if place == "codec":
        return CALLERS
    rules = FOR_CLIENTS if place == "router" else RULES
    roles = rules.get(method, frozenset({Role.ADMIN}))
    return ", ".join(sorted(role.value for role in roles))


@pytest.mark.parametrize("place", ["codec", "router", "engine"])
def test_every_method_is_on_the_page_with_who_may_call(simulated_stack: Stack, place: str) -> None:
    stack = simulated_stack
    address = {"codec": stack.codec, "router": stack.router, "engine": stack.engines[0]}[place].grpc
    told = {method: who for at, method, who in table("gRPC") if at == place}
    assert told == {method: who_may(place, method) for method in reflected(address)}


def test_the_default_ports_are_on_the_page() -> None:
    plan = Plan(options=up_options(["--model", "/models/one"]), program=module_of, environ={})
    engine, router, codec = (
        launch.environ for launch in (plan.engine(0), plan.router([]), plan.codec("127.0.0.1:9000"))
    )
    port, grpc_port, metrics = (
        f"TOKENWAY_{name}" for name in ("SERVER__PORT", "SERVER__GRPC_PORT", "METRICS__PORT")
    )
    listening = [
        *(("codec", codec[name]) for name in (port, grpc_port, metrics)),
        *(("router", router[name]) for name in (port, metrics)),
        *(("engine", engine[name]) for name in (port, metrics)),
    ]
    assert [(service, number) for service, number, _, _ in table("Ports")] == listening
