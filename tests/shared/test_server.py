"""A real server on loopback: statuses, health, reflection, ports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.shared.bug_boundary import FIELD_KEY, RETRY_KEY
from services.shared.channel import open_channel
from services.shared.channel_options import MAX_MESSAGE_BYTES
from services.shared.errors import WIRE, ContextLengthExceeded, InvalidRequest, ServiceError
from services.shared.health import LIVENESS, Readiness
from services.shared.server import CannotListen, Serving, serving
from services.shared.trace_context import HEADER, TraceContext, current
from tests.raw_peer import speak

TEST_SERVICE = "test.Echo"
KINDS = ["unary_unary", "unary_stream", "stream_unary", "stream_stream"]
Act = Callable[[bytes], bytes]


def handlers(act: Act, ended: asyncio.Event) -> grpc.GenericRpcHandler[Any, Any]:
    """Four methods, one of each kind, that answer with what `act` makes of the request."""

    async def unary_unary(request: bytes, _: Any) -> bytes:
        return act(request)

    async def unary_stream(request: bytes, _: Any) -> AsyncIterator[bytes]:
        try:
            yield b"first"
            yield act(request)
            if request == b"wait":
                await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream_unary(requests: AsyncIterator[bytes], _: Any) -> bytes:
        return act(b"".join([request async for request in requests]))

    async def stream_stream(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield act(request)

    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "unary_unary": grpc.unary_unary_rpc_method_handler(unary_unary),
        "unary_stream": grpc.unary_stream_rpc_method_handler(unary_stream),
        "stream_unary": grpc.stream_unary_rpc_method_handler(stream_unary),
        "stream_stream": grpc.stream_stream_rpc_method_handler(stream_stream),
    }
    return grpc.method_handlers_generic_handler(TEST_SERVICE, methods)


@asynccontextmanager
async def echo(act: Act) -> AsyncIterator[tuple[Serving, grpc.aio.Channel, asyncio.Event]]:
    ended = asyncio.Event()

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((handlers(act, ended),))

    async with (
        serving("127.0.0.1:0", register, [TEST_SERVICE], grace_s=0) as door,
        open_channel(door.address) as channel,
    ):
        yield door, channel, ended


def method(channel: grpc.aio.Channel, kind: str) -> Any:
    return getattr(channel, kind)(f"/{TEST_SERVICE}/{kind}")


def metadata_of(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    pairs: Any = error.trailing_metadata()
    return dict(pairs)


async def call(channel: grpc.aio.Channel, kind: str, request: bytes, **options: Any) -> bytes:
    """The last response of a call of that kind."""
    given = request if kind.startswith("unary") else iter([request])
    if kind.endswith("unary"):
        return bytes(await method(channel, kind)(given, **options))
    return [bytes(response) async for response in method(channel, kind)(given, **options)][-1]


def raising(error: BaseException) -> Act:
    def act(_: bytes) -> bytes:
        raise error

    return act


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_call_answers_up_to_the_largest_message(kind: str) -> None:
    large = bytes(MAX_MESSAGE_BYTES)
    async with echo(lambda request: request) as (_, channel, _):
        assert await call(channel, kind, b"one") == b"one"
        assert len(await call(channel, kind, large)) == len(large)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_service_error_is_told_with_its_text_and_field(kind: str) -> None:
    error = InvalidRequest("name must be short, got \ud800é", field="metadata.ключ\n")
    async with echo(raising(error)) as (_, channel, _):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, kind, b"x")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == "name must be short, got \\ud800é"
    trailing = metadata_of(caught.value)
    assert RETRY_KEY not in trailing
    assert trailing[FIELD_KEY] == r"metadata.\u{43a}\u{43b}\u{44e}\u{447}\u{a}"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_bug_is_logged_with_its_trace_and_told_without_details(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with echo(raising(KeyError("secret path"))) as (_, channel, _):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, kind, b"x")
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "internal error"
    assert not metadata_of(caught.value)
    assert [record.message for record in caplog.records] == [f"bug in /{TEST_SERVICE}/{kind}"]
    assert "secret path" in caplog.text


@pytest.mark.parametrize("cls", WIRE, ids=lambda cls: cls.__name__)
async def test_every_error_class_arrives_with_its_code(cls: type[ServiceError]) -> None:
    error = ContextLengthExceeded(9, 8) if cls is ContextLengthExceeded else cls("why")
    async with echo(raising(error)) as (_, channel, _):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel, "unary_unary", b"x")
    assert caught.value.code().value[0] == error.code
    assert caught.value.details() == error.message


async def test_a_call_that_the_client_cancels_ends_its_generator_and_is_no_bug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with echo(lambda request: request) as (_, channel, ended):
        running = method(channel, "unary_stream")(b"wait")
        assert await running.read() == b"first"
        running.cancel()
        await asyncio.wait_for(ended.wait(), 30)
        assert await call(channel, "unary_unary", b"after") == b"after"
    assert not caplog.records


async def test_a_call_runs_under_the_trace_of_its_metadata() -> None:
    def act(_: bytes) -> bytes:
        context = current.get()
        return context.traceparent.encode() if context else b""

    given = TraceContext.new()
    async with echo(act) as (_, channel, _):
        told = await call(channel, "unary_unary", b"", metadata=((HEADER, given.traceparent),))
        other = await call(channel, "unary_unary", b"", metadata=((HEADER, "garbage"),))
    assert told.decode() == given.traceparent
    assert TraceContext.parse(other).traceparent == other.decode() != given.traceparent


async def test_an_unknown_method_is_unimplemented() -> None:
    async with echo(lambda request: request) as (_, channel, _):
        unknown: Any = channel.unary_unary("/test.Echo/none", bytes, bytes)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unknown(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_health_is_watched_from_starting_to_draining() -> None:
    status = health_pb2.HealthCheckResponse
    seen = []
    async with echo(lambda request: request) as (door, channel, _):
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", TEST_SERVICE):
            asked = health_pb2.HealthCheckRequest(service=service)
            assert (await health.Check(asked)).status == status.NOT_SERVING
        watch: Any = health.Watch(health_pb2.HealthCheckRequest())
        seen.append((await watch.read()).status)
        for readiness in (Readiness.READY, Readiness.DRAINING):
            await door.health.set(readiness)
            seen.append((await watch.read()).status)
            lives = await health.Check(health_pb2.HealthCheckRequest(service=LIVENESS))
            assert lives.status == status.SERVING
        assert door.health.readiness is Readiness.DRAINING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health.Check(health_pb2.HealthCheckRequest(service="none"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        watch.cancel()
    assert seen == [status.NOT_SERVING, status.SERVING, status.NOT_SERVING]


async def test_reflection_lists_the_services() -> None:
    async with echo(lambda request: request) as (_, channel, _):
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        answers = [answer async for answer in stub.ServerReflectionInfo(iter([asked]))]
    names = {service.name for service in answers[0].list_services_response.service}
    assert {TEST_SERVICE, "grpc.health.v1.Health"} <= names


async def test_a_taken_port_is_an_error_that_names_the_address() -> None:
    async with echo(lambda request: request) as (door, _, _):
        with pytest.raises(CannotListen, match=f"cannot listen at {door.address}: the port is tak"):
            async with serving(door.address, lambda _: None, []):
                pass


async def test_a_peer_that_speaks_garbage_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with echo(lambda request: request) as (door, channel, _):
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x80\x04\x95pickle" * 99, bytes(70_000)):
            await speak(door.address, garbage)
        assert await call(channel, "unary_unary", b"still here") == b"still here"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
