"""An engine's metrics as Prometheus gets them, from a process that serves generations."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S, Launcher, Service, simulated
from tests.metrics_scrape import scraped


@pytest.fixture
def engine(launcher: Launcher, model_folder: ModelFolder) -> Iterator[Service]:
    with launcher.running("engine", simulated(model_folder)) as running:
        yield running


def generated(engine: Service, prompt_ids: list[int], tenant: str) -> None:
    """One generation, to its end."""
    request = stream_pb2.GenerateRequest(
        request_id="r",
        prompt_ids=prompt_ids,
        stopping=types_pb2.Stopping(max_tokens=4),
        quality_of_service=types_pb2.QualityOfService(tenant=tenant),
    )
    with grpc.insecure_channel(engine.grpc) as channel:
        generate = channel.unary_stream(
            "/tokenway.stream.v1.TokenStreamService/Generate",
            request_serializer=stream_pb2.GenerateRequest.SerializeToString,
            response_deserializer=stream_pb2.GenerateResponse.FromString,
        )
        *_, last = generate(request, timeout=PATIENCE_S)
    assert last.HasField("finished"), last


def test_blocks_prompts_and_generations_sum_up(engine: Service) -> None:
    prompt_ids = list(range(10, 110))
    before = scraped(engine)
    for tenant in ("one", "one", "another"):
        generated(engine, prompt_ids, tenant)
    after = scraped(engine)
    assert before.broken() == after.broken() == after.restless() == []
    assert after.series() == before.series()
    usable = (len(prompt_ids) - 1) // 16
    for name, labels, figure in (
        ("tokenway_kv_blocks", {"state": "leased"}, 0),
        ("tokenway_kv_hit_blocks_total", {"tier": "device"}, usable),
        ("tokenway_kv_miss_blocks_total", {"tier": "device"}, 2 * usable),
        ("tokenway_kv_miss_blocks_total", {"tier": "device", "cause": "absent"}, 2 * usable),
        ("tokenway_engine_generations_ended_total", {"outcome": "finished"}, 3),
        ("tokenway_engine_generations_ended_total", {}, 3),
        ("tokenway_engine_prompt_tokens_total", {}, 3 * len(prompt_ids)),
        ("tokenway_engine_cached_tokens_total", {"tier": "device"}, 16 * usable),
        ("tokenway_engine_output_tokens_total", {}, 12),
        ("tokenway_engine_queue_wait_seconds_count", {}, 3),
    ):
        assert after.of(name, **labels) == figure, name
    assert after.of("tokenway_kv_blocks", state="cached") >= 2 * usable
    assert after.of("process_resident_memory_bytes") > 0
    assert after.of("tokenway_engine_step_seconds_count") == after.of(
        "tokenway_engine_batch_size_count"
    )
    assert after.of("tokenway_engine_batch_size_sum") >= 12
    phases = after.of("tokenway_engine_step_phase_seconds_total")
    assert phases == pytest.approx(after.of("tokenway_engine_step_seconds_sum"))
    assert after.of("tokenway_gc_pause_seconds_count", generation="2") > 0
    assert not {name for name, _, _ in after.samples if name.startswith("tokenway_gpu")}


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
