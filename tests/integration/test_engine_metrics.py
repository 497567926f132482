"""An engine's metrics as Prometheus gets them, from a process that serves generations."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, Service, simulated

CLOSED = {
    "state": {"free", "owned", "leased", "cached"},
    "tier": {"device", "host", "peer", "service"},
    "cause": {
        *("absent", "evicted", "timeout", "checksum", "layout", "off", "unreachable", "no_room"),
        *("queue_full", "failed", "present", "not_worth"),
    },
}
"""All that a label may say; `le` is the bound of a bucket."""

Samples = list[tuple[str, dict[str, str], float]]


@pytest.fixture
def engine(launcher: Launcher, model_folder: ModelFolder) -> Iterator[Service]:
    settings = {**simulated(model_folder), "metrics": {"port": 0}}
    with launcher.running("engine", settings) as running:
        yield running


def scraped(engine: Service) -> Samples:
    told = httpx.get(f"http://{engine.doors['metrics']}/metrics")
    assert told.status_code == 200
    families = text_string_to_metric_families(told.text)
    return [
        (sample.name, sample.labels, sample.value)
        for family in families
        for sample in family.samples
    ]


def of(samples: Samples, name: str, **labels: str) -> float:
    """The sum of the samples of that name which have these labels."""
    return sum(
        value
        for of_name, has, value in samples
        if of_name == name and labels.items() <= has.items()
    )


def generated(engine: Service, prompt_ids: list[int]) -> None:
    """One generation, to its end."""
    request = stream_pb2.GenerateRequest(
        request_id="r",
        prompt_ids=prompt_ids,
        stopping=types_pb2.Stopping(max_tokens=4),
        quality_of_service=types_pb2.QualityOfService(tenant="a-tenant"),
    )
    with grpc.insecure_channel(engine.grpc) as channel:
        generate = channel.unary_stream(
            "/tokenway.stream.v1.TokenStreamService/Generate",
            request_serializer=stream_pb2.GenerateRequest.SerializeToString,
            response_deserializer=stream_pb2.GenerateResponse.FromString,
        )
        *_, last = generate(request, timeout=PATIENCE_S)
    assert last.HasField("finished"), last


def test_blocks_and_prompts_sum_up_and_no_label_is_open(engine: Service) -> None:
    prompt_ids = list(range(10, 110))
    before = scraped(engine)
    for _ in range(2):
        generated(engine, prompt_ids)
    after = scraped(engine)
    assert of(after, "tokenway_engine_steps_total") > of(before, "tokenway_engine_steps_total")
    for told in (before, after):
        assert of(told, "tokenway_kv_blocks") == of(told, "tokenway_kv_pool_blocks") > 0
        assert of(told, "tokenway_kv_blocks", state="leased") == 0
    usable = (len(prompt_ids) - 1) // 16
    assert of(after, "tokenway_kv_blocks", state="cached") >= usable
    assert of(after, "tokenway_kv_hit_blocks_total", tier="device") == usable
    assert of(after, "tokenway_kv_miss_blocks_total", tier="device", cause="absent") == usable
    assert of(after, "tokenway_kv_miss_blocks_total", tier="device") == usable
    assert of(after, "process_resident_memory_bytes") > 0
    for _, labels, _ in after:
        for name, value in labels.items():
            assert name == "le" or value in CLOSED[name]
    assert {name for name, _, _ in before} == {name for name, _, _ in after}


def test_a_taken_port_of_metrics_stops_the_start(
    launcher: Launcher, engine: Service, model_folder: ModelFolder
) -> None:
    taken = int(engine.doors["metrics"].rpartition(":")[2])
    settings = {**simulated(model_folder), "metrics": {"port": taken}}
    refused = f"cannot listen at 127.0.0.1:{taken} for metrics"
    with (
        pytest.raises(AssertionError, match=refused),
        launcher.running("engine2", settings),
    ):
        pass
