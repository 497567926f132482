"""One trace goes through codec, router and engine: in spans, logs and headers, without content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.span_collector import SpanCollector, collecting
from tests.integration.stack import Launcher, Service, Stack, simulated, stack_of
from tests.waiting import until

SECRETS = "Zanzibarian xylophone quokkas"
PARENTS = {
    "codec.request": "",
    "codec.encode": "codec.request",
    "codec.decode": "codec.request",
    "router.generate": "codec.decode",
    "engine.generate": "router.generate",
}
GIVEN = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A stack, and where its spans go."""

    stack: Stack
    collector: SpanCollector

    async def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.stack.url, timeout=60) as client:
            return await client.post(path, json=body, headers=headers)

    async def told(self, service: Service, trace_id: str, message: str) -> dict[str, Any]:
        """The one line with this message about the trace, once it is there."""

        def lines() -> list[dict[str, Any]]:
            return service.lines(trace_id=trace_id, message=message)

        await until(lines)
        (line,) = lines()
        return line


@pytest.fixture(scope="module")
def watched(
    model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    with collecting() as (collector, endpoint):
        environ = {
            "TOKENWAY_TELEMETRY__OTLP_ENDPOINT": endpoint,
            "TOKENWAY_TELEMETRY__LOG_LEVEL": "debug",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        launcher = Launcher(folder=tmp_path_factory.mktemp("traces"), environ=environ)
        with stack_of(launcher, [simulated(model_folder)], model_folder) as stack:
            yield Watched(stack=stack, collector=collector)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_is_one_trace_with_a_span_for_each_stage_and_none_for_a_token(
    watched: Watched, path: str, stream: bool
) -> None:
    body = watched.stack.chat(max_tokens=50, stream=stream)
    answer = await watched.post(path, body)
    trace_id = answer.headers["x-trace-id"]
    await until(lambda: PARENTS.keys() <= watched.collector.of(trace_id).keys())
    spans = watched.collector.of(trace_id)
    assert spans.keys() == PARENTS.keys()
    names = {span.span_id: name for name, (_, span) in spans.items()}
    assert {name: names.get(span.parent_span_id, "") for name, (_, span) in spans.items()} == (
        PARENTS
    )
    for name, (sender, span) in spans.items():
        assert sender == f"tokenway-{name.partition('.')[0]}"
        assert span.start_time_unix_nano <= span.end_time_unix_nano


async def test_a_given_trace_is_continued_in_spans_logs_and_headers(watched: Watched) -> None:
    answer = await watched.post("/v1/messages", watched.stack.chat(max_tokens=5), **GIVEN)
    trace_id = "ab" * 16
    assert answer.headers["x-trace-id"] == trace_id
    await until(lambda: "engine.generate" in watched.collector.of(trace_id))
    await until(lambda: "codec.request" in watched.collector.of(trace_id))
    _, span = watched.collector.of(trace_id)["codec.request"]
    assert span.parent_span_id.hex() == "cd" * 8
    stack = watched.stack
    for service, message in (
        (stack.codec, "request"),
        (stack.router, "generation ended"),
        (stack.engines[0], "prompt received"),
        (stack.engines[0], "generation ended"),
    ):
        line = await watched.told(service, trace_id, message)
        assert line["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("header", ["", "garbage", f"00-{'0' * 32}-{'cd' * 8}-01"])
async def test_a_request_without_a_good_trace_begins_one(watched: Watched, header: str) -> None:
    body = watched.stack.chat(max_tokens=1)
    answers = [
        await watched.post("/v1/chat/completions", body, traceparent=header) for _ in range(2)
    ]
    ids = {answer.headers["x-trace-id"] for answer in answers}
    assert len(ids) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", trace_id) for trace_id in ids)
    assert "0" * 32 not in ids


async def test_every_hop_saw_the_same_tokens_and_no_log_has_content(watched: Watched) -> None:
    stack = watched.stack
    body = stack.chat(SECRETS, max_tokens=40, ignore_eos=True)
    answer = await watched.post("/v1/chat/completions", body)
    trace_id = answer.headers["x-trace-id"]
    codec = await watched.told(stack.codec, trace_id, "request")
    router = await watched.told(stack.router, trace_id, "generation ended")
    engine = await watched.told(stack.engines[0], trace_id, "generation ended")
    received = await watched.told(stack.engines[0], trace_id, "prompt received")
    assert codec["prompt_digest"] == router["prompt_digest"] == received["prompt_digest"]
    assert codec["output_digest"] == router["output_digest"] == engine["output_digest"]
    assert codec["completion_tokens"] == router["output_tokens"] == engine["output_tokens"] == 40
    for changes in ({"temperature": SECRETS}, {"stop": [SECRETS, 7]}, {"messages": SECRETS}):
        refused = await watched.post("/v1/chat/completions", body | changes)
        assert refused.status_code == 400
        await watched.told(stack.codec, refused.headers["x-trace-id"], "request")
    text = answer.json()["choices"][0]["message"]["content"]
    private = [*SECRETS.split(), *re.findall(r"[A-Za-z]{10,}", text)]
    logs = "".join(service.log.read_text() for service in stack.services)
    spans = str(watched.collector.spans)
    for word in private:
        assert word not in logs
        assert word not in spans
    assert json.dumps(text)[1:-1] not in logs
