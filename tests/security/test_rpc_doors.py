"""Bad calls over gRPC: a status that names field, limit and value, and the next call is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from tokenway.codec.v1 import codec_pb2
from tokenway.engine.v1 import engine_pb2
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc
from tokenway.types.v1 import types_pb2 as types

from services.shared.channel import open_channel
from tests.integration.stack import PATIENCE_S, Stack
from tests.security.http_exchange import LEAKS, serves

VOCABULARY = 49152
GOOD = pb.GenerateRequest(prompt_ids=[300, 301], stopping=types.Stopping(max_tokens=3))


def sampling(**values: Any) -> pb.GenerateRequest:
    return pb.GenerateRequest(prompt_ids=[1], sampling=types.Sampling(**values))


def bias(token_id: int, value: float) -> pb.GenerateRequest:
    return sampling(logit_bias=[types.LogitBias(token_id=token_id, bias=value)])


NAN = float("nan")
BAD: list[tuple[pb.GenerateRequest, grpc.StatusCode, tuple[str, ...]]] = [
    (request, grpc.StatusCode.INVALID_ARGUMENT, said)
    for request, said in [
        (pb.GenerateRequest(), ("prompt_ids",)),
        (pb.GenerateRequest(prompt_ids=[1, VOCABULARY]), ("prompt_ids[1]", "49152")),
        (pb.GenerateRequest(prompt_ids=[2**32 - 1]), ("prompt_ids[0]", "49152", str(2**32 - 1))),
        (pb.GenerateRequest(prompt_ids=[1] * 9000), ("8192", "9000")),
        (pb.GenerateRequest(prompt_ids=[1], generated_ids=[VOCABULARY]), ("generated_ids[0]",)),
        (pb.GenerateRequest(prompt_ids=[1], request_id="x" * 129), ("request_id", "128", "129")),
        (sampling(temperature=9), ("temperature", "2", "9")),
        (sampling(temperature=NAN), ("temperature", "nan")),
        (sampling(top_p=0), ("top_p", "0")),
        (sampling(top_k=0), ("top_k", "0")),
        (sampling(min_p=2), ("min_p", "1", "2")),
        (sampling(repetition_penalty=0), ("repetition_penalty", "0")),
        (sampling(presence_penalty=float("inf")), ("presence_penalty", "inf")),
        (bias(VOCABULARY, 1), ("logit_bias", "49152")),
        (bias(5, NAN), ("logit_bias", "nan")),
        (
            pb.GenerateRequest(prompt_ids=[1], stopping=types.Stopping(stop_token_ids=[2**31])),
            ("stop_token_ids[0]", "49152", str(2**31)),
        ),
        (
            pb.GenerateRequest(prompt_ids=[1], output=types.Output(logprobs=21)),
            ("logprobs", "20", "21"),
        ),
    ]
] + [(pb.GenerateRequest(prompt_ids=[1], model="no-such"), grpc.StatusCode.NOT_FOUND, ("model",))]


@pytest.fixture(params=["router", "engine"])
def door(simulated_stack: Stack, request: pytest.FixtureRequest) -> str:
    """Where a token stream is served."""
    stack = simulated_stack
    return stack.router.grpc if request.param == "router" else stack.engines[0].grpc


@pytest.fixture
async def stub(door: str) -> AsyncIterator[Any]:
    async with open_channel(door) as channel:
        yield rpc.TokenStreamServiceStub(channel)


async def is_served(stub: Any) -> bool:
    events = [event async for event in stub.Generate(GOOD)]
    return bool(events[-1].finished.usage.completion_tokens == 3)


@pytest.mark.parametrize(("request_", "code", "said"), BAD)
async def test_values_out_of_bounds(
    stub: Any, request_: pb.GenerateRequest, code: grpc.StatusCode, said: tuple[str, ...]
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stub.Generate(request_):
            pass
    told = caught.value.details() or ""
    assert caught.value.code() is code, told
    assert all(words in told for words in said), told
    assert not LEAKS.search(told)
    assert await is_served(stub)


async def test_in_a_session_they_fail_alone_and_a_name_is_used_once(stub: Any) -> None:
    call = stub.Session(timeout=PATIENCE_S)
    await call.write(_submit(0, GOOD))
    await call.write(_submit(7, GOOD))
    await call.write(_submit(7, GOOD))
    for number, (request, _, _) in enumerate(BAD):
        await call.write(_submit(10 + number, request))
    await call.write(_submit(100, GOOD))
    ends: dict[int, Any] = {}
    refusals = []
    while len(ends) < len(BAD) + 3:
        for event in (await call.read()).frame.events:
            kind = event.WhichOneof("event")
            if kind == "refused":
                refusals.append((event.stream_id, event.refused.message))
            elif kind != "accepted":
                ends[event.stream_id] = getattr(event, kind)
    for number, (_, code, said) in enumerate(BAD):
        failed = ends[10 + number]
        assert failed.code == code.value[0]
        assert all(words in failed.message for words in said), failed.message
        assert not failed.retryable
    assert [ends[name].usage.completion_tokens for name in (0, 7, 100)] == [3, 3, 3]
    ((stream_id, message),) = refusals
    assert stream_id == 7
    assert "stream_id" in message
    assert "got 7" in message
    call.cancel()


def _submit(stream_id: int, request: pb.GenerateRequest) -> pb.SessionRequest:
    return pb.SessionRequest(submit=pb.Submit(stream_id=stream_id, request=request))


METHODS = [
    (place, method)
    for place, module, name in (
        ("codec", codec_pb2, "CodecService"),
        ("router", pb, "TokenStreamService"),
        ("router", engine_pb2, "EngineService"),
        ("engine", pb, "TokenStreamService"),
        ("engine", engine_pb2, "EngineService"),
    )
    for method in module.DESCRIPTOR.services_by_name[name].methods
]


@pytest.mark.parametrize(
    ("place", "method"), METHODS, ids=[f"{place}-{method.full_name}" for place, method in METHODS]
)
async def test_bytes_that_are_no_message_get_a_status_without_details(
    simulated_stack: Stack, place: str, method: MethodDescriptor
) -> None:
    stack = simulated_stack
    address = {"codec": stack.codec, "router": stack.router, "engine": stack.engines[0]}[place].grpc
    path = f"/{method.containing_service.full_name}/{method.name}"
    async with open_channel(address) as channel:
        call: Any = channel.stream_stream(path, None, None)(
            iter([b"\xff" * 100]), timeout=PATIENCE_S
        )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in call:
                pass
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").endswith("could not be read")
    assert serves(stack)


async def test_a_message_beyond_the_limit_is_refused(stub: Any) -> None:
    huge = pb.GenerateRequest(prompt_ids=[2**31] * 16_000_000)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in stub.Generate(huge):
            pass
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await is_served(stub)
