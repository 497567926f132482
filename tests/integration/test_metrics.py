"""Metrics of all services while answers end in every way: the sums hold at each scrape."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.integration.stack import PATIENCE_S, Launcher, Stack, simulated
from tests.metrics_scrape import Scrape, miscounted, scraped
from tests.redis_server import wait_for

SLOW = {"step_us": 5_000, "token_us": 5}
OUTPUT = {"gen_ai_token_type": "output"}
QUEUE = {"wait_for_replica_s": 0.2}


@pytest.fixture
def cluster(launcher: Launcher, model_folder: ModelFolder) -> Iterator[Cluster]:
    engines = [simulated(model_folder, simulation=SLOW)] * 2
    with cluster_of(launcher, engines, model_folder, service={"queue": QUEUE}) as running:
        yield running


def asked(stack: Stack, **changes: Any) -> httpx.Response:
    body = stack.chat("Hello " * 30, **{"max_tokens": 20, **changes})
    return httpx.post(f"{stack.url}/v1/chat/completions", json=body, timeout=PATIENCE_S)


def left_alone(stack: Stack) -> None:
    """Its caller hangs up when the answer has begun."""
    body = stack.chat("Hello there", max_tokens=2000, stream=True)
    url = f"{stack.url}/v1/chat/completions"
    with httpx.stream("POST", url, json=body, timeout=PATIENCE_S) as answer:
        next(answer.iter_lines())


@contextmanager
def watched(stack: Stack) -> Iterator[list[str]]:
    """Scrapes router and codec all the time; gives the sums that did not hold."""
    faults: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for service in (stack.router, stack.codec):
                faults.extend(scraped(service).broken())

    with ThreadPoolExecutor() as pool:
        watching = pool.submit(watch)
        try:
            yield faults
        finally:
            over.set()
            watching.result()


async def test_sums_hold_whatever_becomes_of_answers(cluster: Cluster) -> None:
    stack = cluster.stack
    with watched(stack) as faults, ThreadPoolExecutor(16) as pool:
        assert asked(stack).status_code == 200
        running = [pool.submit(asked, stack, max_tokens=400, seed=seed) for seed in range(8)]
        running += [pool.submit(asked, stack, stream=True) for _ in range(4)]
        leaving = [pool.submit(left_alone, stack) for _ in range(4)]
        began = "tokenway_router_relayed_tokens_total"
        wait_for(lambda: scraped(stack.router).of(began) > 100)
        cluster.engines[0].kill()
        assert [one.result().status_code for one in running] == [200] * 12
        for one in leaving:
            one.result()
        assert asked(stack, n=10**6).status_code == 400
        cluster.engines[1].kill()
        wait_for(lambda: asked(stack).status_code == 503)
    assert faults == []
    await cluster.revive()
    wait_for(lambda: asked(stack).status_code == 200)
    stack = cluster.stack
    wait_for(lambda: not miscounted(stack))
    codec, router = scraped(stack.codec), scraped(stack.router)
    ended = "tokenway_codec_requests_ended_total"
    assert codec.of(ended, operation="chat_completions", outcome="finished") == 14
    assert codec.of(ended, outcome="cancelled") == 4
    assert codec.of(ended, outcome="refused") >= 1
    assert codec.of("tokenway_codec_errors_total", error_type="invalid_request") == 1
    assert codec.of("gen_ai_server_time_to_first_token_seconds_count") >= 18
    tokens = codec.of("tokenway_codec_output_tokens_total")
    assert codec.of("gen_ai_client_token_usage_sum", **OUTPUT) == tokens
    assert router.of("tokenway_router_legs_total", cause="failed") >= 1
    assert router.of("tokenway_router_continuations_total") >= 1
    assert router.of("tokenway_router_setbacks_total", code="unavailable") >= 1
    assert router.of("tokenway_router_client_bytes_total", direction="received") > 0
    assert router.of("tokenway_grpc_messages_total", direction="sent") > 0
    assert router.of("tokenway_router_replicas") == 2


def test_odd_names_of_models_paths_and_users_make_no_series(simulated_stack: Stack) -> None:
    stack = simulated_stack
    asked(stack)
    before = [scraped(service).series() for service in stack.services]
    with httpx.Client(base_url=stack.url, timeout=PATIENCE_S) as client:
        for number in range(250):
            body = {**stack.chat(), "max_tokens": 1, "user": f'u{number}"\n'}
            odd = f'model {number}"{{}}\n\u2028'
            refused = client.post("/v1/completions", json={**body, "model": odd})
            assert refused.status_code in (400, 404)
            assert client.get(f"/v1/odd/{number}").status_code == 404
    assert [scraped(service).series() for service in stack.services] == before


def test_a_sum_that_does_not_hold_is_told() -> None:
    name = "tokenway_engine_generations"
    scrape = Scrape(
        [
            (f"{name}_started_total", {}, 3),
            (f"{name}_running", {}, 1),
            (f"{name}_ended_total", {"outcome": "finished"}, 1),
            ("tokenway_kv_pool_blocks", {}, 2),
            ("tokenway_kv_blocks", {"state": "free"}, 1),
            ("tokenway_kv_blocks", {"state": "owned"}, 1),
        ]
    )
    (fault,) = scrape.broken()
    assert fault.startswith(f"{name}_started_total is 3, not 2: ")
    assert scrape.restless() == [f"{name}_running is 1"]
