"""Who asks is told where the time went, in every protocol; who does not ask sees nothing of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.codec.told_timeline import HEADER
from services.shared.channel import open_channel
from services.shared.stream.events import CachedTokens, CacheMiss, Timeline
from tests.codec_bed import MODEL, Bed, BedMaker

HI = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/completions": {"prompt": "hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 50},
    "/v1/responses": {"input": "hi"},
}
WANTED = {HEADER: "1"}
TIMES = Timeline(
    fetch_us=3,
    queued_us=5,
    prefill_us=7,
    decode_us=11,
    admission_us=2,
    preemptions=1,
    continuations=2,
    cached_tokens=CachedTokens(device=1, peer=1),
    cache_miss=CacheMiss.EVICTED,
)
CHOICE = {
    "index": 0,
    "fetch_us": 3,
    "queued_us": 5,
    "prefill_us": 7,
    "decode_us": 11,
    "admission_us": 2,
    "continuations": 2,
    "preemptions": 1,
    "cached_tokens": {"device": 1, "host": 0, "peer": 1, "service": 0},
    "cache_miss": "evicted",
}


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    engine = beds.engine(beds.says("Hello there. Friend."))
    engine.timeline, engine.routed, engine.cached_tokens = TIMES, "least load", 1
    async with beds.bed(engine) as bed:
        yield bed


def told_in(answer: httpx.Response) -> list[dict[str, Any]]:
    """All timelines of an answer, wherever they stand in its objects."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        texts = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
    else:
        texts = [answer.text]
    whole = [json.loads(text) for text in texts]
    inner = [one["response"] for one in whole if "response" in one]
    return [one["tokenway"] for one in [*whole, *inner] if "tokenway" in one]


async def post(bed: Bed, path: str, stream: bool, **headers: str) -> httpx.Response:
    body = {"model": MODEL, "stream": stream, **BODIES[path]}
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 200
    return answer


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_tells_it_once_and_only_who_asks(bed: Bed, path: str, stream: bool) -> None:
    for headers in ({}, {HEADER: "0"}, {HEADER: "yes"}):
        assert "tokenway" not in (await post(bed, path, stream, **headers)).text
    answer = await post(bed, path, stream, **WANTED)
    (told,) = told_in(answer)
    assert told["request_id"] == answer.headers["x-request-id"]
    assert told["trace_id"] == answer.headers["x-trace-id"]
    assert told["routed"] == "least load"
    assert told["cached_tokens"] == {"device": 1, "host": 0, "peer": 0, "service": 0}
    assert told["choices"] == [CHOICE]
    assert 0 < told["encoded_us"] <= told["first_us"] <= told["total_us"]


async def test_openai_reads_it_beside_the_usage(bed: Bed) -> None:
    asked: Any = {"model": MODEL, "messages": HI, "extra_headers": WANTED}
    whole = await bed.openai.chat.completions.create(**asked)
    assert whole.model_extra is not None
    assert whole.model_extra["tokenway"]["choices"] == [CHOICE]
    with_usage: list[dict[str, Any]] = [{}, {"stream_options": {"include_usage": True}}]
    for options in with_usage:
        stream = await bed.openai.chat.completions.create(**asked | options, stream=True)
        chunks = [chunk async for chunk in stream]
        last = chunks[-1]
        assert last.model_extra is not None
        assert last.model_extra["tokenway"]["choices"] == [CHOICE]
        assert (last.usage is not None) is bool(options)
        texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(texts) == "Hello there. Friend."
    async with bed.openai.chat.completions.stream(**asked) as events:
        final = await events.get_final_completion()
    assert final.choices[0].message.content == "Hello there. Friend."


async def test_openai_reads_it_in_a_response(bed: Bed) -> None:
    asked: Any = {"model": MODEL, "input": "hi", "extra_headers": WANTED}
    whole = await bed.openai.responses.create(**asked)
    assert whole.model_extra is not None
    assert whole.model_extra["tokenway"]["choices"] == [CHOICE]
    async with bed.openai.responses.stream(**asked) as events:
        final = await events.get_final_response()
    assert final.model_extra is not None
    assert final.model_extra["tokenway"]["choices"] == [CHOICE]


async def test_anthropic_reads_it_beside_the_usage(bed: Bed) -> None:
    asked: Any = {"model": MODEL, "messages": HI, "max_tokens": 50, "extra_headers": WANTED}
    whole = await bed.anthropic.messages.create(**asked)
    assert whole.model_extra is not None
    assert whole.model_extra["tokenway"]["choices"] == [CHOICE]
    async with bed.anthropic.messages.stream(**asked) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_message()
    assert final.content[0].to_dict()["text"] == "Hello there. Friend."
    (delta,) = [event for event in events if event.type == "message_delta"]
    assert delta.model_extra is not None
    assert delta.model_extra["tokenway"]["choices"] == [CHOICE]


async def test_grpc_asks_by_metadata(bed: Bed) -> None:
    body = json.dumps({"model": MODEL, "messages": HI}).encode()
    async with open_channel(bed.service.grpc) as channel:
        stub: Any = rpc.CodecServiceStub(channel)
        asked = stub.ChatCompletions(HttpBody(data=body), metadata=((HEADER, "1"),))
        told = json.loads((await asked.read()).data)["tokenway"]
        plain = stub.ChatCompletions(HttpBody(data=body))
        assert "tokenway" not in json.loads((await plain.read()).data)
    assert told["choices"] == [CHOICE]


async def test_each_choice_has_its_own_and_one_that_a_stop_string_ended_has_none(bed: Bed) -> None:
    asked = {"model": MODEL, "messages": HI, "n": 2}
    async with httpx.AsyncClient(base_url=bed.url, headers=WANTED) as client:
        both = await client.post("/v1/chat/completions", json=asked)
        stopped = await client.post("/v1/chat/completions", json=asked | {"stop": " Friend"})
    assert [one["index"] for one in both.json()["tokenway"]["choices"]] == [0, 1]
    assert stopped.json()["tokenway"]["choices"] == []
    assert stopped.json()["tokenway"]["total_us"] > 0
