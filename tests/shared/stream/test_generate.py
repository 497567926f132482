"""The simple door: one generation per call."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.channel import open_channel
from services.shared.errors import Overloaded
from services.shared.stream.events import CancelReason, Failed
from services.shared.stream.generate import generate
from services.shared.stream.generation_wire import request_of
from services.shared.trace_context import TraceContext
from tests.recorder import generation
from tests.scripted_source import ScriptedSource, oracle
from tests.stream_server import playing, stream_server
from tests.waiting import until


async def test_a_call_yields_accepted_all_tokens_and_the_end() -> None:
    source = ScriptedSource()
    trace = TraceContext.new().traceparent
    async with stream_server(source) as address, open_channel(address) as channel, playing(source):
        call = rpc.TokenStreamServiceStub(channel).Generate(
            request_of(generation("x")), metadata=(("traceparent", trace),)
        )
        responses = [response async for response in call]
    kinds = [response.WhichOneof("event") for response in responses]
    assert kinds == ["accepted", *["tokens"] * (len(kinds) - 2), "finished"]
    tokens = [token for response in responses for token in response.tokens.token_ids]
    assert tokens == oracle((1, 2, 3), 4)
    assert source.submitted[0].traceparent == trace


async def test_cancelling_the_call_cancels_the_generation() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel, playing(source):
        call: Any = rpc.TokenStreamServiceStub(channel).Generate(
            request_of(generation("x", max_tokens=10_000))
        )
        await call.read()
        call.cancel()
        await until(lambda: source.cancelled)
    assert source.cancelled == [("x", CancelReason.CLIENT_GONE)]


async def test_the_deadline_of_the_call_is_that_of_the_generation() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel, playing(source):
        stub = rpc.TokenStreamServiceStub(channel)
        for timeout_s, timeout_ms in ((50, None), (50, 99_000), (99, 50_000), (None, 50_000)):
            request = request_of(generation("x", timeout_ms=timeout_ms))
            async for _ in stub.Generate(request, timeout=timeout_s):
                pass
    told = [entry.generation.quality_of_service.timeout_ms or 0 for entry in source.submitted]
    assert all(40_000 < timeout_ms <= 51_000 for timeout_ms in told)


async def test_errors_have_their_status() -> None:
    source = ScriptedSource(refuse=Overloaded("full"))
    async with stream_server(source) as address, open_channel(address) as channel:
        stub = rpc.TokenStreamServiceStub(channel)
        for request, status, told in (
            (pb.GenerateRequest(), grpc.StatusCode.INVALID_ARGUMENT, "prompt_ids must not be emp"),
            (request_of(generation("x")), grpc.StatusCode.RESOURCE_EXHAUSTED, "full"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match=told) as caught:
                async for _ in stub.Generate(request):
                    pass
            assert caught.value.code() is status


async def test_a_failure_on_the_way_is_the_status_of_the_call() -> None:
    source = ScriptedSource()
    async with stream_server(source) as address, open_channel(address) as channel:
        call: Any = rpc.TokenStreamServiceStub(channel).Generate(request_of(generation("x")))
        await until(lambda: source.running)
        source.running["x"].emit(Failed.of(Overloaded("preempted")))
        with pytest.raises(grpc.aio.AioRpcError, match="preempted"):
            await call.read()


async def test_leaving_the_iterator_cancels() -> None:
    source = ScriptedSource()
    events = generate(source, generation("x"), "")
    async with playing(source):
        await anext(events)
        await events.aclose()
    assert source.cancelled == [("x", CancelReason.CLIENT_GONE)]
