"""Calls that are opened and reset by the thousand harm nobody else, at each gRPC door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2 as pb
from tokenway.codec.v1 import codec_pb2_grpc as codec_rpc
from tokenway.stream.v1 import stream_pb2 as stream_pb
from tokenway.stream.v1 import stream_pb2_grpc as stream_rpc
from tokenway.types.v1 import types_pb2 as types

from services.shared.channel import open_channel
from services.shared.channel_options import MAX_MESSAGE_BYTES, MAX_METADATA_BYTES
from services.shared.stream.generation import Generation
from tests.codec_bed import MODEL, BedMaker
from tests.recorder import Recorder, submission
from tests.router.fleet_of_servers import router_over
from tests.scripted_engine import ScriptedEngine, Step, serving_engine
from tests.security.http2_flood import flood
from tests.stream_server import client
from tests.waiting import PATIENCE_S

CALLS = 2000
SAID = "The sea is wide and the sky above it is wider still."
STEADY = 77
"""Output tokens of the stream that must not notice."""

GENERATE = "/tokenway.stream.v1.TokenStreamService/Generate"
CHAT = "/tokenway.codec.v1.CodecService/ChatCompletions"


class Steady:
    """Plays numbers, the last of them when it is let go on; to others nothing."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    def script(self, generation: Generation) -> Sequence[Step]:
        if generation.stopping.max_tokens != STEADY:
            return [asyncio.Event()]
        return [[1, 2], self.go_on, *([at] for at in range(3, STEADY + 1))]


@asynccontextmanager
async def token_door(kind: str, engine: ScriptedEngine) -> AsyncIterator[str]:
    async with serving_engine(engine) as address:
        if kind == "engine":
            yield address
            return
        async with router_over([address]) as (router, _):
            yield router.address


@pytest.mark.parametrize("kind", ["engine", "router"])
async def test_a_stream_of_tokens_goes_on(beds: BedMaker, kind: str) -> None:
    steady, recorder = Steady(), Recorder()
    engine = ScriptedEngine(script=steady.script, describes=beds.described())
    call = stream_pb.GenerateRequest(prompt_ids=[1], stopping=types.Stopping(max_tokens=5))
    async with token_door(kind, engine) as address, client(address) as session:
        session.submit(submission("steady", recorder, max_tokens=STEADY))
        await recorder.until(2)
        await flood(address, GENERATE, call.SerializeToString(), CALLS)
        steady.go_on.set()
        await recorder.ended()
        assert recorder.ids == list(range(1, STEADY + 1))
        again = Recorder()
        session.submit(submission("again", again, max_tokens=STEADY))
        await again.ended()
        assert again.ids == recorder.ids


async def test_an_answer_in_text_goes_on(beds: BedMaker) -> None:
    go_on = asyncio.Event()

    def script(generation: Generation) -> Sequence[Step]:
        ids = beds.encoder.encode_text(SAID)
        if generation.stopping.max_tokens != STEADY:
            return [asyncio.Event()]
        return [ids[:2], go_on, *([token] for token in ids[2:])]

    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    steady = HttpBody(data=json.dumps({**asked, "max_tokens": STEADY, "stream": True}).encode())
    dropped = HttpBody(data=json.dumps({**asked, "max_tokens": 5, "stream": True}).encode())
    async with (
        beds.bed(beds.engine(script)) as bed,
        open_channel(bed.service.grpc) as channel,
        asyncio.timeout(PATIENCE_S),
    ):
        stub: Any = codec_rpc.CodecServiceStub(channel)
        bodies = stub.ChatCompletions(steady).__aiter__()
        frames = [(await anext(bodies)).data, (await anext(bodies)).data]
        await flood(bed.service.grpc, CHAT, dropped.SerializeToString(), CALLS)
        go_on.set()
        frames += [body.data async for body in bodies]
        encoded = await stub.Encode(pb.EncodeRequest(text=SAID))
    lines = [frame.removeprefix(b"data: ") for frame in frames]
    chunks = [json.loads(line) for line in lines if line.startswith(b"{")]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == SAID
    assert list(encoded.token_ids) == beds.encoder.encode_text(SAID)


@pytest.mark.parametrize("kind", ["engine", "router"])
async def test_what_a_call_may_carry_is_bounded(beds: BedMaker, kind: str) -> None:
    steady = Steady()
    engine = ScriptedEngine(script=steady.script, describes=beds.described())
    async with token_door(kind, engine) as address, open_channel(address) as channel:
        stub: Any = stream_rpc.TokenStreamServiceStub(channel)
        small = stream_pb.GenerateRequest(prompt_ids=[1])
        for request, metadata in [
            (small, [("x-more", "a" * MAX_METADATA_BYTES)]),
            (stream_pb.GenerateRequest(model="a" * (MAX_MESSAGE_BYTES + 1)), []),
        ]:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.Generate(request, metadata=metadata, timeout=PATIENCE_S).read()
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not engine.submissions


async def test_what_a_call_to_the_codec_may_carry_is_bounded(beds: BedMaker) -> None:
    async with (
        beds.bed(beds.engine(beds.says("fine"))) as bed,
        open_channel(bed.service.grpc) as channel,
    ):
        stub: Any = codec_rpc.CodecServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Encode(
                pb.EncodeRequest(text="hi"), metadata=[("x-more", "a" * MAX_METADATA_BYTES)]
            )
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await stub.Encode(pb.EncodeRequest(text="hi"))).token_ids
