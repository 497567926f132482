"""What each service tells of its process, at a real door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import grpc
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from services.shared.access.denials import Denials, Kind, Why
from services.shared.audit.audit import NO_AUDIT
from services.shared.grpc_traffic import Traffic, TrafficMeter
from services.shared.mesh.mesh import ClearMesh
from services.shared.process_metrics import Process, metrics_served
from services.shared.server import serving


class Expiring(ClearMesh):
    """One whose certificate ends."""

    not_after: float | None = 7


def mesh_of(kind: type[ClearMesh]) -> ClearMesh:
    """Of a service that has refused somebody."""
    mesh = kind(Denials(asyncio.get_running_loop()), NO_AUDIT)
    mesh.denials.note(Why(address="10.0.0.1", cause="codec at Drain", kind=Kind.ROLE))
    return mesh


async def told(process: Process) -> dict[str, float]:
    async with metrics_served("127.0.0.1", 0, process) as doors, httpx.AsyncClient() as client:
        text = (await client.get(f"http://{doors['metrics']}/metrics")).text
    families = text_string_to_metric_families(text)
    return {
        f"{sample.name}{sorted(sample.labels.values())}": sample.value
        for family in families
        for sample in family.samples
    }


async def test_a_service_tells_of_its_process_and_its_certificate_if_it_has_one() -> None:
    figures = await told(Process(service="codec", mesh=mesh_of(Expiring)))
    assert figures["tokenway_certificate_expiry_timestamp_seconds[]"] == 7
    assert figures["process_resident_memory_bytes[]"] > 0
    assert "tokenway_event_loop_lag_seconds_count[]" in figures
    assert "tokenway_gc_pause_seconds_count['2']" in figures
    assert figures["tokenway_access_refused_total['role']"] == 1
    assert [name for name in figures if name.startswith("tokenway_build_info['")]
    without = await told(Process(service="codec", mesh=mesh_of(ClearMesh)))
    assert "tokenway_certificate_expiry_timestamp_seconds[]" not in without


async def test_without_a_port_nothing_is_served() -> None:
    process = Process(service="codec", mesh=mesh_of(ClearMesh))
    async with metrics_served("127.0.0.1", None, process) as no:
        assert no == {}


async def test_what_goes_through_a_grpc_door_is_counted_whatever_the_kind_of_call() -> None:
    traffic = Traffic()
    request = health_pb2.HealthCheckRequest(service="s")
    async with (
        serving("127.0.0.1:0", lambda _: None, ["s"], guards=[TrafficMeter(traffic)]) as door,
        grpc.aio.insecure_channel(door.address) as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        check: Awaitable[health_pb2.HealthCheckResponse] = health.Check(request)
        answer = await check
        watch = health.Watch(request)
        await anext(aiter(watch))
        watch.cancel()
        await asyncio.wait([asyncio.ensure_future(watch.code())])
    assert (traffic.received_messages, traffic.sent_messages) == (2, 2)
    assert traffic.received_bytes == 2 * request.ByteSize()
    assert traffic.sent_bytes == 2 * answer.ByteSize()
