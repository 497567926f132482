"""A real Prometheus scrapes a real run: every curve of every dashboard finds something."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.deploy.prometheus_server import PrometheusServer, prometheus_server
from tests.deploy.watching import Query, queries, rules
from tests.integration.stack import PATIENCE_S
from tests.integration.up_process import UpProcess, up_process
from tests.nvml_stub import nvml_stub
from tests.redis_server import wait_for

INTERVAL = "30s"
"""Of rates, in the place of Grafana's variable."""

WORDS = " ".join(f"word {number}" for number in range(900))


def asked(up: UpProcess, path: str, **body: Any) -> httpx.Response:
    url = f"http://{up.address('http')}{path}"
    return httpx.post(url, json=body, headers=up.headers, timeout=PATIENCE_S)


def everything(up: UpProcess, model: str, turn: int) -> None:
    """A little of all that is counted."""
    hello = {"role": "user", "content": f"Hello number {turn}."}
    chat = {"model": model, "max_tokens": 8, "messages": [hello]}
    asked(up, "/v1/chat/completions", **chat)
    asked(up, "/v1/chat/completions", **chat, stream=True)
    asked(up, "/v1/messages", **chat)
    asked(up, "/v1/responses", model=model, max_output_tokens=8, input="Hello.")
    asked(up, "/v1/completions", model=model, max_tokens=8, prompt="Hello.")
    for _ in range(2):
        long = {"role": "user", "content": f"{turn} {WORDS}"}
        asked(up, "/v1/chat/completions", **{**chat, "messages": [long]})
    asked(up, "/v1/chat/completions", **chat, n=10**6)
    httpx.post(f"http://{up.address('http')}/v1/messages", json=chat, timeout=PATIENCE_S)


@contextmanager
def busy(up: UpProcess, model: str) -> Iterator[None]:
    """Somebody asks all the time."""
    over = threading.Event()

    def ask() -> None:
        turn = 0
        while not over.is_set():
            everything(up, model, turn)
            turn += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def prometheus(
    model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    folder = tmp_path_factory.mktemp("watched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LD_LIBRARY_PATH", str(nvml_stub(folder)))
        with up_process(folder, model_folder, "--replicas", "2", "--prefill", "1") as up:
            targets = {job: up.metrics(job) for job in ("codec", "router", "engine")}
            with (
                prometheus_server(folder, targets) as server,
                busy(up, model_folder.name),
            ):
                yield server


def expr_of(query: Query) -> str:
    return query.expr.replace("$__rate_interval", INTERVAL)


@pytest.mark.parametrize("query", list(queries()), ids=lambda one: f"{one.dashboard}: {one.panel}")
def test_no_curve_is_empty(prometheus: PrometheusServer, query: Query) -> None:
    wait_for(lambda: bool(prometheus.values(expr_of(query))))


def test_every_rule_can_be_computed_and_no_alert_of_a_fault_is_told(
    prometheus: PrometheusServer,
) -> None:
    def computed() -> bool:
        return all(rule["health"] == "ok" for rule in prometheus.rules())

    wait_for(computed)
    assert {rule["name"] for rule in prometheus.rules()} == set(rules())
    told = {rule["name"] for rule in prometheus.rules() if rule["state"] == "firing"}
    assert not told & {"TokenwayKvSumBroken", "TokenwayCountsBroken", "TokenwayServiceDown"}
