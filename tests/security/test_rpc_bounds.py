"""gRPC calls that are large or deep where no limit of messages counts: refused, the next served."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc

from services.shared.channel import open_channel
from tests.integration.stack import PATIENCE_S, Stack
from tests.security.http_exchange import LEAKS, serves

HEALTH = "/grpc.health.v1.Health/Check"
METADATA = {
    "one that is long": (("x-a", "a" * 2_000_000),),
    "many": tuple((f"x-{number}", "a" * 100) for number in range(20_000)),
    "binary": (("x-a-bin", bytes(1_000_000)),),
}


@pytest.mark.parametrize("place", ["codec", "router", "engine"])
@pytest.mark.parametrize("kind", METADATA)
async def test_metadata_beyond_any_use_is_refused(
    simulated_stack: Stack, place: str, kind: str
) -> None:
    stack = simulated_stack
    address = {"codec": stack.codec, "router": stack.router, "engine": stack.engines[0]}[place].grpc
    async with open_channel(address) as channel:
        call: Any = channel.unary_unary(HEALTH, None, None)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"", metadata=METADATA[kind], timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await call(b"", timeout=PATIENCE_S)
    assert serves(stack)


@pytest.mark.parametrize("method", ["ChatCompletions", "Messages", "Responses", "Completions"])
@pytest.mark.parametrize(
    "inside", ["[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000]
)
async def test_a_body_that_is_deep_is_refused(
    simulated_stack: Stack, method: str, inside: str
) -> None:
    body = HttpBody(data=f'{{"model": "m", "messages": {inside}}}'.encode())
    async with open_channel(simulated_stack.codec.grpc) as channel:
        stub: Any = codec_pb2_grpc.CodecServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(stub, method)(body, timeout=PATIENCE_S).read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    message = json.loads(caught.value.details() or "")["error"]["message"]
    assert "nested" in message
    assert "64" in message
    assert not LEAKS.search(message)
    assert serves(simulated_stack)
