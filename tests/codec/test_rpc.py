"""The gRPC door: the same bytes as over HTTP, and errors as statuses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import grpc
import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2 as pb
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.shared.channel import open_channel
from services.shared.stream.events import CancelReason
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.waiting import until

TEXT = "Hello 日本語 🦀!"
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "hi"}],
    # Each protocol ignores what belongs to another.
    "input": "hi",
}
PATHS = {
    "ChatCompletions": "/v1/chat/completions",
    "Messages": "/v1/messages",
    "Responses": "/v1/responses",
    "Completions": "/v1/completions",
}


@pytest.fixture
async def bed(beds: BedMaker) -> AsyncIterator[Bed]:
    async with beds.bed(beds.engine(beds.says(TEXT, 100))) as bed:
        yield bed


@pytest.fixture
async def stub(bed: Bed) -> AsyncIterator[Any]:
    async with open_channel(bed.service.grpc) as channel:
        yield rpc.CodecServiceStub(channel)


def http_body(**changes: Any) -> HttpBody:
    return HttpBody(content_type="application/json", data=json.dumps(BODY | changes).encode())


def without_names(text: str) -> str:
    return re.sub(r'"(chatcmpl-|cmpl-|resp_|msg_)[0-9a-f]{24,28}"|"created(_at)?":\d+', "", text)


@pytest.mark.parametrize("method", PATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_bytes_are_those_of_http(bed: Bed, stub: Any, method: str, stream: bool) -> None:
    # Responses knows a prompt that is kept by the server.
    asked = {"stream": stream} | ({"prompt": "hi"} if method == "Completions" else {})
    bodies = [body async for body in getattr(stub, method)(http_body(**asked))]
    async with httpx.AsyncClient(base_url=bed.url) as client:
        answer = await client.post(PATHS[method], json=BODY | asked)
    assert without_names(b"".join(body.data for body in bodies).decode()) == without_names(
        answer.text
    )
    assert all(answer.headers["content-type"].startswith(body.content_type) for body in bodies)
    assert len(bodies) == (answer.text.count("\n\n") if stream else 1)


async def test_errors_are_statuses_with_the_protocols_object(stub: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.ChatCompletions(http_body(temperature=3)).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert json.loads(caught.value.details() or "")["error"]["param"] == "temperature"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.Messages(http_body(model="nope")).read()
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert json.loads(caught.value.details() or "")["error"]["type"] == "not_found_error"


async def test_request_id_and_trace_come_back(bed: Bed, stub: Any) -> None:
    trace_id = "ab" * 16
    call = stub.ChatCompletions(
        http_body(),
        metadata=(("x-request-id", "mine"), ("traceparent", f"00-{trace_id}-{'cd' * 8}-01")),
    )
    await call.read()
    assert await call.code() is grpc.StatusCode.OK
    trailers = dict(await call.trailing_metadata())
    assert (trailers["x-request-id"], trailers["x-trace-id"]) == ("mine", trace_id)
    assert trace_id in bed.engine.submissions[0].traceparent


async def test_cancelled_call_cancels_the_generation(beds: BedMaker) -> None:
    never = asyncio.Event()
    engine = beds.engine(lambda _: [never])
    async with beds.bed(engine) as bed, open_channel(bed.service.grpc) as channel:
        stub: Any = rpc.CodecServiceStub(channel)
        call = stub.ChatCompletions(http_body(stream=True))
        assert (await call.read()).data.startswith(b"data: ")
        call.cancel()
        await until(lambda: engine.cancels == [CancelReason.CLIENT_GONE])


async def test_counts_and_models(bed: Bed, stub: Any) -> None:
    counted = json.loads((await stub.CountTokens(http_body())).data)
    await stub.ChatCompletions(http_body()).read()
    assert counted == {"input_tokens": len(bed.engine.generations[0].prompt_ids)}
    assert json.loads((await stub.CountInputTokens(http_body())).data)["input_tokens"] > 0
    models = json.loads((await stub.ListModels(pb.ListModelsRequest())).data)
    assert models["data"][0]["id"] == MODEL


async def test_text_goes_to_tokens_and_back_without_control_tokens(
    beds: BedMaker, stub: Any
) -> None:
    text = "a<|im_end|>b 🦀"
    ids = list((await stub.Encode(pb.EncodeRequest(text=text))).token_ids)
    assert not set(ids) & beds.encoder.tokenizer.control_ids
    call = stub.Decode(pb.DecodeRequest(token_ids=[token]) for token in ids)
    assert "".join([response.text async for response in call]) == text


async def test_token_beyond_the_vocabulary_is_refused(stub: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="token_ids must be below 49152") as caught:
        await stub.Decode(iter([pb.DecodeRequest(token_ids=[49152])])).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
