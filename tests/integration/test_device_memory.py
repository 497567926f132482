"""NVML through a library that stands for a driver: in load reports, in metrics and in routing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
from tokenway.router.v1 import router_pb2
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, Service, simulated
from tests.metrics_scrape import Scrape, scraped
from tests.nvml_stub import NOT_SUPPORTED, Told, nvml_stub, tell
from tests.redis_server import wait_for

ROOMY = Told(total=1000, used=100, reasons=0x40)
FULL = replace(ROOMY, used=970, utilization=99)
SILENT = Told(total=NOT_SUPPORTED, utilization=NOT_SUPPORTED, reasons=NOT_SUPPORTED)
STARTED = "tokenway_engine_generations_started_total"


@dataclass(frozen=True)
class Devices:
    """Engines on a device of their own each, which tells what is in `folders`, and their router."""

    folders: list[Path]
    engines: list[Service]
    router: Service

    def used(self) -> dict[str, int]:
        """Bytes in use by the address of each engine, as the router was told; -1: not told."""
        with grpc.insecure_channel(self.router.grpc) as channel:
            listed = channel.unary_unary(
                "/tokenway.router.v1.RouterService/ListReplicas",
                request_serializer=router_pb2.ListReplicasRequest.SerializeToString,
                response_deserializer=router_pb2.ListReplicasResponse.FromString,
            )(router_pb2.ListReplicasRequest(), timeout=PATIENCE_S)
        return {
            one.address: one.load.device_memory.used_bytes
            if one.load.HasField("device_memory")
            else -1
            for one in listed.replicas
            if one.status == router_pb2.REPLICA_STATUS_READY
        }

    def tell(self, *told: Told) -> None:
        """Returns when the router knows."""
        for folder, figures in zip(self.folders, told, strict=True):
            tell(folder, figures)
        expected = [-1 if one.total < 0 else one.used for one in told]
        addresses = [engine.grpc for engine in self.engines]
        wait_for(lambda: self.used() == dict(zip(addresses, expected, strict=True)))

    def scrapes(self) -> list[Scrape]:
        return [scraped(engine) for engine in self.engines]

    def generate(self, token_ids: range) -> list[float]:
        """How many generations went to each engine, of one for each token, which is its prompt."""
        before = [scrape.of(STARTED) for scrape in self.scrapes()]
        with grpc.insecure_channel(self.router.grpc) as channel:
            generate = channel.unary_stream(
                "/tokenway.stream.v1.TokenStreamService/Generate",
                request_serializer=stream_pb2.GenerateRequest.SerializeToString,
                response_deserializer=stream_pb2.GenerateResponse.FromString,
            )
            for token_id in token_ids:
                request = stream_pb2.GenerateRequest(
                    request_id="r",
                    prompt_ids=[token_id] * 100,
                    stopping=types_pb2.Stopping(max_tokens=1),
                )
                *_, last = generate(request, timeout=PATIENCE_S)
                assert last.HasField("finished")
        after = [scrape.of(STARTED) for scrape in self.scrapes()]
        return [now - then for now, then in zip(after, before, strict=True)]


@pytest.fixture
def devices(model_folder: ModelFolder, tmp_path: Path) -> Iterator[Devices]:
    with ExitStack() as running:
        folders, engines = [tmp_path / "one", tmp_path / "other"], []
        for folder in folders:
            folder.mkdir()
            environ = {"LD_LIBRARY_PATH": str(nvml_stub(folder, ROOMY))}
            launcher = Launcher(folder=folder, environ=environ)
            engines.append(
                running.enter_context(launcher.running("engine", simulated(model_folder)))
            )
        replicas = {"replicas": [engine.grpc for engine in engines]}
        launcher = Launcher(folder=tmp_path, environ={})
        router = running.enter_context(launcher.running("router", replicas))
        yield Devices(folders, engines, router)


def test_what_nvml_tells_reaches_load_reports_metrics_and_routing(devices: Devices) -> None:
    devices.tell(FULL, ROOMY)
    load = devices.engines[0].describe().load
    assert (load.device_memory.used_bytes, load.device_memory.free_bytes) == (970, 30)
    assert load.device_utilization == 99
    assert devices.router.describe().load.device_memory.used_bytes == 1070
    assert devices.generate(range(300, 306)) == [0, 6]
    full, roomy = devices.scrapes()
    for name, labels, figures in (
        ("tokenway_gpu_memory_bytes", {"state": "used"}, (970, 100)),
        ("tokenway_gpu_memory_bytes", {"state": "free"}, (30, 900)),
        ("tokenway_gpu_memory_total_bytes", {}, (1000, 1000)),
        ("tokenway_gpu_utilization_ratio", {"device": "0"}, (0.99, 0.42)),
        ("tokenway_gpu_temperature_celsius", {}, (61, 61)),
        ("tokenway_gpu_throttled", {"reason": "hw_thermal"}, (1, 1)),
        ("tokenway_gpu_throttled", {}, (1, 1)),
    ):
        assert (full.of(name, **labels), roomy.of(name, **labels)) == figures, name

    devices.tell(ROOMY, FULL)
    assert devices.generate(range(310, 316)) == [6, 0]

    devices.tell(SILENT, ROOMY)
    assert not devices.engines[0].describe().load.HasField("device_utilization")
    assert sum(devices.generate(range(320, 322))) == 2
    silent, _ = devices.scrapes()
    told = {name for name, _, _ in silent.samples if name.startswith("tokenway_gpu")}
    assert told == {"tokenway_gpu_temperature_celsius"}
