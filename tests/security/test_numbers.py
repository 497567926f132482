"""Every number that a caller may send, at and beyond its bounds: taken, or refused by name."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc

from services.shared.channel import open_channel
from tests.integration.stack import PATIENCE_S, Stack
from tests.security.http_exchange import CHAT, LEAKS, MESSAGES, connected, refused, serves

LITERALS = (
    *("-1", "0", "1", "2", "3", "100", "101", "128", "129", "1.5", "1e-40", "-0.0", "-0"),
    *("2147483647", "2147483648", "-2147483649", "4294967296", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551616", "1e400", "-1e400", "1e308", "9" * 5000),
    *("NaN", "Infinity", "-Infinity", "true", "false", '"1"', '"NaN"', "[1]", "{}", '{"1": 1}'),
)
"""As JSON spells them; some are no JSON."""

RESPONSES, COMPLETIONS, DETOKENIZE = "/v1/responses", "/v1/completions", "/detokenize"
SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "seed"),
    *("repetition_penalty", "min_tokens", "priority", "stop_token_ids", "logit_bias"),
)
FIELDS: dict[str, tuple[str, ...]] = {
    CHAT: (*SAMPLING, "n", "top_logprobs", "max_tokens", "max_completion_tokens"),
    COMPLETIONS: (*SAMPLING, "n", "best_of", "logprobs", "max_tokens", "prompt"),
    MESSAGES: ("max_tokens", "temperature", "top_p", "top_k"),
    RESPONSES: (*SAMPLING, "max_output_tokens", "top_logprobs"),
    DETOKENIZE: ("tokens",),
}
ANSWERS = {CHAT, COMPLETIONS, MESSAGES, RESPONSES}
NESTED = {
    "stop_token_ids": "[%s]",
    "logit_bias": '{"5": %s}',
    "prompt": "[%s]",
    "tokens": "[%s]",
}


@pytest.fixture(scope="module")
def client(simulated_stack: Stack) -> Iterator[httpx.Client]:
    with connected(simulated_stack) as door:
        yield door


def body(stack: Stack, path: str, field: str, literal: str) -> bytes:
    """A good request in which one number stands as it is spelled."""
    start = f'"model": "{stack.model}", "{field}": {NESTED.get(field, "%s") % literal}'
    rest = {
        "messages": '[{"role": "user", "content": "hi"}]',
        "max_tokens": "3",
        "max_output_tokens": "3",
        "input": '"hi"',
        "prompt": '"hi"' if path == COMPLETIONS else "null",
        "logprobs": "true" if path == CHAT else "null",
        "stream": "true" if path in ANSWERS else "null",
        "tokens": "[1]",
    }
    rest.pop(field, None)
    if field == "max_completion_tokens":
        del rest["max_tokens"]
    more = ", ".join(f'"{name}": {value}' for name, value in rest.items())
    return f"{{{start}, {more}}}".encode()


@pytest.mark.parametrize(
    ("path", "field"), [(path, field) for path, fields in FIELDS.items() for field in fields]
)
def test_over_http(simulated_stack: Stack, client: httpx.Client, path: str, field: str) -> None:
    taken = 0
    for literal in LITERALS:
        content = body(simulated_stack, path, field, literal)
        with client.stream("POST", path, content=content) as answer:
            taken += answer.status_code == 200
            if answer.status_code == 200:
                assert next(answer.iter_bytes())
                continue
            answer.read()
        message = refused(path, answer, 400)["message"]
        assert any(word in message for word in (field, "JSON", "numbers")), (literal, message)
        assert len(message) < 500
    assert 0 < taken < len(LITERALS)


def test_the_table_is_not_in_vain(simulated_stack: Stack) -> None:
    assert serves(simulated_stack)


KINDS = FieldDescriptor
INTEGERS: dict[int, tuple[int, ...]] = {
    KINDS.CPPTYPE_UINT32: (0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1),
    KINDS.CPPTYPE_UINT64: (0, 1, 2**31, 2**63, 2**64 - 1),
    KINDS.CPPTYPE_ENUM: (0, 1, 2, 99, 2**31 - 1),
}
FLOATS = (-1.0, -0.0, 0.0, 1e-45, 1.0, 2.0, 3.4e38, math.inf, -math.inf, math.nan)


def numbers(descriptor: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all numeric fields of a message, also those that hold many."""
    for field in descriptor.fields:
        if field.message_type is not None:
            yield from numbers(field.message_type, (*path, field.name))
        elif field.cpp_type in INTEGERS or field.cpp_type == KINDS.CPPTYPE_FLOAT:
            yield (*path, field.name)


PATHS = list(numbers(pb.GenerateRequest.DESCRIPTOR))


def values(path: tuple[str, ...]) -> tuple[float, ...]:
    descriptor: Any = pb.GenerateRequest.DESCRIPTOR
    for name in path[:-1]:
        descriptor = descriptor.fields_by_name[name].message_type
    return INTEGERS.get(descriptor.fields_by_name[path[-1]].cpp_type, FLOATS)


def request_with(path: tuple[str, ...], value: float) -> pb.GenerateRequest:
    request = pb.GenerateRequest(request_id="r", prompt_ids=[300, 301])
    request.stopping.max_tokens = 2
    place: Any = request
    for name in path[:-1]:
        inner = getattr(place, name)
        place = inner if isinstance(inner, Message) else inner.add()
    try:
        setattr(place, path[-1], value)
    except AttributeError:
        getattr(place, path[-1]).append(value)
    return request


@pytest.fixture(params=["router", "engine"])
async def stub(simulated_stack: Stack, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    stack = simulated_stack
    address = stack.router.grpc if request.param == "router" else stack.engines[0].grpc
    async with open_channel(address) as channel:
        yield rpc.TokenStreamServiceStub(channel)


async def test_over_grpc(stub: Any, simulated_stack: Stack) -> None:
    """Nothing but an end, or a refusal that names the field; the context bounds what is long."""
    assert len(PATHS) >= 18
    fine = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED}
    refusals: list[tuple[tuple[str, ...], grpc.StatusCode, str]] = []
    for path in PATHS:
        for value in values(path):
            call = stub.Generate(request_with(path, value), timeout=PATIENCE_S)
            try:
                assert [event async for event in read_a_little(call)]
            except grpc.aio.AioRpcError as error:
                refusals.append((path, error.code(), error.details() or ""))
    assert len(refusals) > len(PATHS)
    for path, code, told in refusals:
        if path[-1] == "timeout_ms" and code is grpc.StatusCode.DEADLINE_EXCEEDED:
            continue
        assert code in fine, (path, told)
        assert any(name in told for name in path), (path, told)
        assert not LEAKS.search(told)
    assert serves(simulated_stack)


async def read_a_little(call: Any) -> AsyncIterator[Any]:
    """Some outputs are as long as the context; what counts is that they begin."""
    async for event in call:
        yield event
        if event.WhichOneof("event") == "tokens" and event.tokens.first_position > 4:
            call.cancel()
            return
