"""A full system refuses early, cheaply and truly, at both doors."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import grpc
import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.codec import engine_link
from services.shared.bug_boundary import RETRY_KEY
from services.shared.channel import open_channel
from services.shared.errors import Code
from services.shared.stream.events import Failed
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.waiting import PATIENCE_S, until

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
ANSWERS = (CHAT, "/v1/completions", MESSAGES, "/v1/responses")
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "hi"}],
}


@pytest.fixture
async def full(beds: BedMaker) -> AsyncIterator[Bed]:
    """A codec that knows that its router refuses, for 4 seconds as that thinks."""
    engine = beds.engine(beds.says("fine"))
    async with beds.bed(engine) as bed:
        engine.refusing, engine.expected_wait_ms = True, 4000
        await until_refused(bed)
        yield bed


async def until_refused(bed: Bed) -> None:
    async with httpx.AsyncClient(base_url=bed.url) as client, asyncio.timeout(PATIENCE_S):
        while (await client.post(CHAT, json=BODY)).status_code == 200:
            pass


async def until_taken(bed: Bed, headers: Mapping[str, str]) -> None:
    async with httpx.AsyncClient(base_url=bed.url, headers=headers) as client:
        async with asyncio.timeout(PATIENCE_S):
            while (await client.post(CHAT, json=BODY)).status_code != 200:
                pass


def of(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(r)["fields"] for r in caplog.records if r.getMessage() == message]


@pytest.mark.parametrize("path", ANSWERS)
async def test_a_full_system_answers_before_it_has_the_body(full: Bed, path: str) -> None:
    host, _, port = full.service.http.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(PATIENCE_S):
        status = await reader.readline()
    writer.close()
    assert status.split()[1] == (b"529" if path == MESSAGES else b"429")


async def test_the_rest_of_a_refused_body_is_no_next_request(full: Bed) -> None:
    body = BODY | {"messages": [{"role": "user", "content": "x" * 1_000_000}]}
    async with httpx.AsyncClient(base_url=full.url) as client:
        for _ in range(3):
            assert (await client.post(MESSAGES, json=body)).status_code == 529
            assert (await client.get("/v1/models")).status_code == 200


async def test_each_protocol_tells_overload_its_own_way_and_the_wait(full: Bed) -> None:
    async with httpx.AsyncClient(base_url=full.url) as client:
        chat = await client.post(CHAT, json=BODY, headers={"authorization": "Bearer a"})
        messages = await client.post(MESSAGES, json=BODY, headers={"x-api-key": "b"})
    assert chat.status_code == 429
    assert chat.json()["error"]["type"] == "rate_limit_error"
    assert messages.status_code == 529
    assert messages.json()["error"]["type"] == "overloaded_error"
    for answer in (chat, messages):
        assert 4000 <= int(answer.headers["retry-after-ms"]) <= 6000
        assert 4 <= int(answer.headers["retry-after"]) <= 6


async def test_what_costs_the_router_nothing_is_answered_while_it_refuses(full: Bed) -> None:
    async with httpx.AsyncClient(base_url=full.url) as client:
        assert (await client.post("/v1/messages/count_tokens", json=BODY)).status_code == 200
        assert (await client.get("/v1/models")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200


async def test_early_repeats_of_a_caller_are_summed_up_in_the_log(
    beds: BedMaker, caplog: pytest.LogCaptureFixture
) -> None:
    engine = beds.engine(beds.says("fine"))
    async with beds.bed(engine) as bed:
        engine.refusing, engine.expected_wait_ms = True, 60_000
        await until_refused(bed)
        caplog.set_level(logging.INFO)
        async with httpx.AsyncClient(base_url=bed.url, headers={"x-api-key": "mine"}) as client:
            first, *others = [await client.post(MESSAGES, json=BODY) for _ in range(20)]
    name = first.headers["request-id"]
    assert [line["request_id"] for line in of(caplog, "request")] == [name]
    for other in others:
        assert (other.status_code, other.content) == (529, first.content)
        assert other.headers["request-id"] == other.headers["x-request-id"] == name
        assert 1 <= int(other.headers["retry-after"]) <= 120
    lines = [line for line in of(caplog, "refused again, too early") if line["request_id"] == name]
    assert sum(line["refused"] for line in lines) == 19


async def test_nobody_is_refused_for_a_refusal_before(full: Bed) -> None:
    mine = {"x-api-key": "mine"}
    full.engine.expected_wait_ms = 3_600_000
    async with httpx.AsyncClient(base_url=full.url, headers=mine) as client:
        assert (await client.post(CHAT, json=BODY)).status_code == 429
        full.engine.refusing = False
        await until_taken(full, mine)
        for _ in range(5):
            assert (await client.post(CHAT, json=BODY)).status_code == 200


async def test_a_load_of_long_ago_refuses_nobody(
    full: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_link, "LOAD_LASTS_S", -1.0)
    async with httpx.AsyncClient(base_url=full.url) as client:
        assert (await client.post(CHAT, json=BODY)).status_code == 200


async def test_the_codecs_own_limit_is_told_before_the_body_is_read(beds: BedMaker) -> None:
    never = asyncio.Event()
    engine = beds.engine(lambda _: [beds.encoder.encode_text("so far"), never])
    async with (
        beds.bed(engine, lambda s: replace(s, limits=replace(s.limits, max_concurrency=1))) as bed,
        httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as client,
    ):
        running = asyncio.ensure_future(client.post(CHAT, json=BODY))
        await until(lambda: engine.submissions)
        refused = await client.post(CHAT, content=b"no JSON")
        assert refused.status_code == 429
        assert 1000 <= int(refused.headers["retry-after-ms"]) <= 1500
        never.set()
        assert (await running).status_code == 200


@pytest.mark.parametrize("stream", [True, False])
async def test_the_wait_that_a_router_tells_reaches_the_caller(
    beds: BedMaker, stream: bool
) -> None:
    failed = Failed(code=Code.RESOURCE_EXHAUSTED, message="queue", retry_after_s=7.2)
    engine = beds.engine(lambda _: [failed])
    engine.accepts = False
    body = BODY | {"stream": stream}
    async with beds.bed(engine) as bed:
        async with httpx.AsyncClient(base_url=bed.url) as client:
            for path, status in ((CHAT, 429), (MESSAGES, 529)):
                answer = await client.post(path, json=body)
                assert answer.status_code == status
                assert answer.headers["retry-after"] == "8"
                assert answer.headers["retry-after-ms"] == "7200"
        async with open_channel(bed.service.grpc) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(channel, body)
    trailing: Any = caught.value.trailing_metadata()
    assert dict(trailing)[RETRY_KEY] == "7200"
    assert dict(trailing)["x-request-id"].startswith("req_")


@pytest.mark.parametrize("stream", [True, False])
async def test_time_that_ran_out_in_the_routers_queue_is_told_as_such(
    beds: BedMaker, stream: bool
) -> None:
    failed = Failed(code=Code.DEADLINE_EXCEEDED, message="50 ms are over after 0 tokens")
    engine = beds.engine(lambda _: [failed])
    engine.accepts = False
    body = BODY | {"stream": stream}
    async with beds.bed(engine) as bed, httpx.AsyncClient(base_url=bed.url) as client:
        chat = await client.post(CHAT, json=body)
        messages = await client.post(MESSAGES, json=body)
    assert (chat.status_code, chat.json()["error"]["code"]) == (504, "timeout")
    assert (messages.status_code, messages.json()["error"]["type"]) == (504, "timeout_error")


async def ask(channel: grpc.aio.Channel, body: Mapping[str, Any], key: str = "k") -> HttpBody:
    """The first message of an answer of Messages over gRPC."""
    call: Any = rpc.CodecServiceStub(channel).Messages(
        HttpBody(data=json.dumps(body).encode()), metadata=(("x-api-key", key),)
    )
    answer: HttpBody = await call.read()
    return answer


async def test_the_grpc_door_refuses_like_the_http_door(
    full: Bed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    details, waits_ms = [], []
    async with open_channel(full.service.grpc) as channel:
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await ask(channel, {}, key="mine")  # no body could be told from a bad one
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            details.append(caught.value.details())
            trailing: Any = caught.value.trailing_metadata()
            waits_ms.append(int(dict(trailing)[RETRY_KEY]))
    assert json.loads(details[0] or "")["error"]["type"] == "overloaded_error"
    assert len(set(details)) == 1
    assert all(0 < wait_ms <= 9000 for wait_ms in waits_ms)
    assert len([line for line in of(caplog, "request") if line["door"] == "grpc"]) == 1


async def test_a_codec_without_an_engine_says_so_before_it_reads(beds: BedMaker) -> None:
    async with (
        beds.codec(beds.settings("127.0.0.1:9"), lambda door: door) as service,
        httpx.AsyncClient(base_url=f"http://{service.http}") as client,
    ):
        for _ in range(2):
            answer = await client.post(MESSAGES, content=b"no JSON")
            assert answer.status_code == 503
            assert answer.headers["retry-after"] in {"1", "2"}
