"""Stubs are what the protos say, and every service and RPC in them is served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection
from grpc_reflection.v1alpha import reflection_pb2 as reflected
from tokenway.codec.v1 import codec_pb2, codec_pb2_grpc
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.kv.v1 import kv_pb2, kv_pb2_grpc
from tokenway.router.v1 import router_pb2, router_pb2_grpc
from tokenway.stream.v1 import stream_pb2, stream_pb2_grpc

from services.codec.rpc import CodecServicer
from services.engine.kv.servicer import KvServicer
from services.engine.rpc import EngineServicer
from services.router.rpc import FleetServicer
from services.router.servicer import RouterServicer
from services.shared.stream.servicer import TokenStreamServicer
from tests.integration.stack import PATIENCE_S, Stack

ROOT = Path(__file__).parents[2]
CODEC = codec_pb2.DESCRIPTOR.services_by_name["CodecService"]
ENGINE = engine_pb2.DESCRIPTOR.services_by_name["EngineService"]
KV = kv_pb2.DESCRIPTOR.services_by_name["KvService"]
ROUTER = router_pb2.DESCRIPTOR.services_by_name["RouterService"]
STREAM = stream_pb2.DESCRIPTOR.services_by_name["TokenStreamService"]


def test_stubs_are_generated_from_the_protos() -> None:
    check = [sys.executable, str(ROOT / "protos/build.py"), "--check"]
    told = subprocess.run(check, capture_output=True, text=True, timeout=PATIENCE_S, check=False)  # noqa: S603 ours
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize(
    ("service", "base", "servicer"),
    [
        (CODEC, codec_pb2_grpc.CodecServiceServicer, CodecServicer),
        (ENGINE, engine_pb2_grpc.EngineServiceServicer, EngineServicer),
        (ENGINE, engine_pb2_grpc.EngineServiceServicer, FleetServicer),
        (KV, kv_pb2_grpc.KvServiceServicer, KvServicer),
        (ROUTER, router_pb2_grpc.RouterServiceServicer, RouterServicer),
        (STREAM, stream_pb2_grpc.TokenStreamServiceServicer, TokenStreamServicer),
    ],
)
def test_every_rpc_is_implemented(service: ServiceDescriptor, base: type, servicer: type) -> None:
    for method in service.methods:
        assert getattr(servicer, method.name) is not getattr(base, method.name)


def listed(address: str) -> set[str]:
    """The services that a server tells of itself."""
    with grpc.insecure_channel(address) as channel:
        ask = channel.stream_stream(
            f"/{reflection.SERVICE_NAME}/ServerReflectionInfo",
            request_serializer=reflected.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflected.ServerReflectionResponse.FromString,
        )
        request = reflected.ServerReflectionRequest(list_services="")
        (response,) = ask(iter([request]), timeout=PATIENCE_S)
    return {service.name for service in response.list_services_response.service}


def test_each_port_serves_its_services_and_no_other(simulated_stack: Stack) -> None:
    stack = simulated_stack
    always = {health.SERVICE_NAME, reflection.SERVICE_NAME}
    tokens = always | {STREAM.full_name, ENGINE.full_name}
    assert listed(stack.codec.grpc) == always | {CODEC.full_name}
    assert listed(stack.router.grpc) == tokens | {ROUTER.full_name}
    assert listed(stack.engines[0].grpc) == tokens | {KV.full_name}
