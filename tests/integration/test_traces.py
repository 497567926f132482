"""One trace goes through codec, router and engine: in spans, logs and headers, without content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest

from services.shared.model_folder import ModelFolder
from tests.integration.span_collector import SpanCollector, collecting
from tests.integration.stack import Launcher, Service, Stack, simulated, stack_of
from tests.waiting import until

LONG_TOKENS = 200
"""Prompts from here on are computed by the second engine, of which the first fetches them."""

SECRETS = "Zanzibarian xylophone quokkas"
PARENTS = {
    "codec.request": "",
    "codec.encode": "codec.request",
    "codec.decode": "codec.request",
    "router.generate": "codec.decode",
    "router.attempt": "router.generate",
    "engine.generate": "router.attempt",
    "engine.queued": "engine.generate",
    "engine.prefill": "engine.generate",
    "engine.decode": "engine.generate",
}
ANSWERED = "codec.request codec.decode router.generate router.attempt engine.generate"
ASKED = "codec.request codec.decode router.generate router.prefill engine.generate"
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
        }
        launcher = Launcher(folder=tmp_path_factory.mktemp("traces"), environ=environ)
        engines = [
            simulated(model_folder, simulation={"step_us": 4000}),
            simulated(model_folder, role="prefill"),
        ]
        rules = {"prefill": {"threshold_tokens": LONG_TOKENS}}
        with stack_of(launcher, engines, model_folder, service=rules) as stack:
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
    assert not spans["codec.request"][1].parent_span_id


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


async def test_blocks_that_come_from_another_engine_are_part_of_the_trace(watched: Watched) -> None:
    body = watched.stack.chat("tell me more " * LONG_TOKENS, max_tokens=4)
    trace_id = (await watched.post("/v1/chat/completions", body)).headers["x-trace-id"]
    expected = [
        "codec.request",
        "codec.request codec.encode",
        *(ANSWERED.rsplit(" ", up)[0] for up in range(4)),
        *(f"{ANSWERED} engine.{stage}" for stage in ("fetch", "queued", "prefill", "decode")),
        f"{ANSWERED} kv.read",
        f"{ANSWERED} kv.read kv.lend",
        ASKED.rsplit(" ", 1)[0],
        ASKED,
        *(f"{ASKED} engine.{stage}" for stage in ("queued", "prefill")),
    ]
    await until(lambda: len(watched.collector.all(trace_id)) == len(expected))
    assert watched.collector.ways(trace_id) == sorted(expected)
    (read,) = watched.collector.all(trace_id, "kv.read")
    told = {pair.key: pair.value for pair in read.attributes}
    assert told["tokenway.tier"].string_value == "peer"
    assert told["tokenway.found_blocks"].int_value == told["tokenway.wanted_blocks"].int_value > 0


@pytest.mark.parametrize("words", [1, LONG_TOKENS])
async def test_the_parts_of_a_timeline_are_no_longer_than_the_whole(
    watched: Watched, words: int
) -> None:
    body = watched.stack.chat("once more " * words, max_tokens=20, ignore_eos=True, n=2)
    answer = await watched.post("/v1/chat/completions", body, **{"x-tokenway-timeline": "1"})
    told = answer.json()["tokenway"]
    assert told["trace_id"] == answer.headers["x-trace-id"]
    assert [choice["index"] for choice in told["choices"]] == [0, 1]
    for choice in told["choices"]:
        parts = [choice[f"{part}_us"] for part in ("queued", "fetch", "prefill", "decode")]
        assert sum(parts) <= told["total_us"] - told["encoded_us"]
        assert choice["decode_us"] > 0
        assert (choice["fetch_us"] > 0) is (words == LONG_TOKENS)
        assert choice["admission_us"] <= choice["queued_us"]
    assert 0 < told["encoded_us"] <= told["first_us"] <= told["total_us"]
    line = await watched.told(watched.stack.codec, told["trace_id"], "request")
    assert told["total_us"] <= 1000 * line["duration_ms"] + 1000


async def test_an_answer_outlives_its_engine_in_one_trace_with_linked_attempts(
    watched: Watched,
) -> None:
    """The last of these tests: the engine does not come back."""
    stack = watched.stack
    body = stack.chat(max_tokens=300, stream=True, ignore_eos=True)
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=60) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        chunks = answer.aiter_lines()
        for _ in range(20):
            await anext(chunks)
        stack.engines[0].process.kill()
        rest = [line async for line in chunks]
    assert rest[-2:] == ["data: [DONE]", ""]
    trace_id, request_id = answer.headers["x-trace-id"], answer.headers["x-request-id"]
    for name in ("codec.request", "router.generate", "engine.generate"):
        await until(partial(watched.collector.all, trace_id, name))
    ways = watched.collector.ways(trace_id)
    assert ways[0] == "codec.request"
    first, second = watched.collector.all(trace_id, "router.attempt")
    assert [link.span_id for link in second.links] == [first.span_id]
    assert [link.trace_id.hex() for link in second.links] == [trace_id]
    assert (first.status.code, second.status.code) == (2, 0)
    (whole,) = watched.collector.all(trace_id, "router.generate")
    assert whole.status.code == 0
    for service in stack.services:
        assert service.lines(trace_id=trace_id, request_id=request_id), service.log
