"""Callers who send or read slowly, or hold too much, are sent away; others notice nothing."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, TypeAlias

import httpx
import pytest

from services.codec import http_connection
from services.codec.connection_settings import ConnectionSettings
from services.codec.http_server import Door, listening
from services.codec.settings import DoorSettings, ServiceSettings
from services.shared.access.settings import SecuritySettings
from services.shared.byte_size import ByteSize
from services.shared.stream.events import CancelReason
from services.shared.stream.generation import Generation
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.scripted_engine import Step
from tests.waiting import PATIENCE_S, until

SAID = "The sea is wide and the sky above it is wider still."
ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
FLOOD = 12_000
"""Tokens; more than buffers of kernels hold when each is a chunk of its own."""

MAX_BODY_BYTES = 20_000

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"

TOLD = {"logprobs": True, "top_logprobs": 5}

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter


def within(**changes: Any) -> Callable[[DoorSettings], DoorSettings]:
    connections = ConnectionSettings(**changes)
    return lambda door: replace(door, connections=connections)


def small_bodies(service: ServiceSettings) -> ServiceSettings:
    limits = replace(service.limits, max_body_bytes=ByteSize(MAX_BODY_BYTES))
    return replace(service, limits=limits)


class Steady:
    """A bed on which one stream has begun, and is found whole when the test is over."""

    def __init__(self, beds: BedMaker) -> None:
        self._beds = beds
        self._go_on = asyncio.Event()

    def script(self, generation: Generation) -> Sequence[Step]:
        """Who asks for so many tokens is flooded with them; others get the text in two parts."""
        if generation.stopping.max_tokens == FLOOD:
            (token,) = self._beds.encoder.encode_text(" sea")
            return [[token]] * (FLOOD - 1) + [asyncio.Event()]
        ids = self._beds.encoder.encode_text(SAID)
        return [ids[:3], self._go_on, *([token] for token in ids[3:])]

    @asynccontextmanager
    async def bed(
        self,
        change: Callable[[DoorSettings], DoorSettings],
        security: SecuritySettings | None = None,
    ) -> AsyncIterator[Bed]:
        engine = self._beds.engine(self.script)
        engine.describes.context_length = 2 * FLOOD
        async with self._beds.bed(engine, small_bodies, change, security) as bed:
            whole = asyncio.create_task(self._read(bed))
            await until(lambda: engine.submissions)
            yield bed
            self._go_on.set()
            assert await whole == SAID

    async def _read(self, bed: Bed) -> str:
        create: Any = bed.openai.chat.completions.create
        stream = await create(**ASKED, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


@pytest.fixture
def steady(beds: BedMaker) -> Steady:
    return Steady(beds)


@asynccontextmanager
async def peer(bed: Bed, **options: Any) -> AsyncIterator[tuple[Reader, Writer]]:
    host, _, port = bed.service.http.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), **options)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield reader, writer
    finally:
        writer.transport.abort()


def head(path: str = CHAT, *, length: int = 2, more: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{more}\r\n".encode()


@asynccontextmanager
async def dripping(writer: Writer, unit: bytes) -> AsyncIterator[None]:
    """Sends unit after unit inside the block."""

    async def drip() -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(unit)
                await writer.drain()
                await asyncio.sleep(0.002)

    task = asyncio.create_task(drip())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


Answer: TypeAlias = tuple[int, dict[str, str], dict[str, Any]]


async def told(reader: Reader) -> Answer:
    """Status, headers and body of an answer with a length."""
    top = (await reader.readuntil(b"\r\n\r\n")).decode().strip()
    status, *lines = top.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(status.split()[1]), headers, json.loads(body)


async def hung_up(reader: Reader) -> None:
    with suppress(ConnectionError):
        assert await reader.read() == b""


@pytest.mark.parametrize("more", [f"x: {'a' * 5000}\r\n", "a: b\r\n" * 30])
@pytest.mark.parametrize("is_whole", [True, False])
async def test_large_heads_are_refused(steady: Steady, more: str, *, is_whole: bool) -> None:
    change = within(max_header_bytes=ByteSize(4096), max_headers=20)
    async with steady.bed(change) as bed, peer(bed) as (reader, writer):
        # A head that is too long is refused before its end.
        cut = None if is_whole or more.count("\r") > 1 else -4
        writer.write(head(more=more)[:cut])
        status, headers, error = await told(reader)
        assert (status, headers["connection"]) == (431, "close")
        assert error["error"]["code"] == "request_header_fields_too_large"
        assert "must have at most" in error["error"]["message"]
        assert headers["x-request-id"]


async def test_heads_within_the_limits_are_read(steady: Steady) -> None:
    change = within(max_header_bytes=ByteSize(4096), max_headers=20)
    async with steady.bed(change) as bed, httpx.AsyncClient(base_url=bed.url) as client:
        many = {f"x-{at}": "a" * 100 for at in range(12)}
        assert (await client.get("/v1/models", headers=many)).status_code == 200


async def test_a_head_that_drips_is_not_waited_for(steady: Steady) -> None:
    async with steady.bed(within(header_timeout_s=0.1)) as bed, peer(bed) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nx: ")
        async with dripping(writer, b"a"):
            status, headers, error = await told(reader)
        assert (status, headers["connection"]) == (408, "close")
        assert error["error"]["message"] == "headers must be sent within 0.1 seconds"


async def test_the_second_head_of_a_connection_is_not_waited_for_either(steady: Steady) -> None:
    async with steady.bed(within(header_timeout_s=0.1)) as bed, peer(bed) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET ")
        async with dripping(writer, b"a"):
            status, _, _ = await told(reader)
        assert status == 408


@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/tokenize"])
async def test_a_body_that_drips_is_not_waited_for(steady: Steady, path: str) -> None:
    async with steady.bed(within(body_timeout_s=0.1)) as bed, peer(bed) as (reader, writer):
        writer.write(head(path, length=MAX_BODY_BYTES))
        async with dripping(writer, b" "):
            status, headers, error = await told(reader)
        assert (status, headers["connection"]) == (408, "close")
        assert error["error"]["message"] == "the body must be sent within 0.1 seconds"
        kind = "timeout_error" if path == MESSAGES else "invalid_request_error"
        assert error["error"]["type"] == kind
        assert len(bed.engine.submissions) == 1


async def test_a_body_that_nobody_waits_for_ends_too(
    steady: Steady, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is there before the body, which drips on."""
    monkeypatch.setattr(http_connection, "LINGER_S", 0.05)
    async with steady.bed(within(body_timeout_s=0.1)) as bed, peer(bed) as (reader, writer):
        writer.write(head("/nowhere", length=MAX_BODY_BYTES))
        async with dripping(writer, b" "):
            status, _, _ = await told(reader)
            assert status == 404
            await hung_up(reader)


async def test_an_idle_connection_is_closed(steady: Steady) -> None:
    async with steady.bed(within(idle_timeout_s=0.05)) as bed, peer(bed) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")


async def test_more_connections_than_there_may_be_are_sent_away(steady: Steady) -> None:
    async with steady.bed(within(max_open=3)) as bed, peer(bed) as first, peer(bed):
        first[1].write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await first[0].readuntil(b"\r\n\r\n")
        async with peer(bed) as (reader, _):
            status, headers, error = await told(reader)
            assert (status, headers["retry-after"]) == (503, "1")
            assert "3 connections at a time" in error["error"]["message"]
        first[1].close()
        await first[1].wait_closed()
        await until_served(bed)


async def test_one_address_has_its_share_of_connections(steady: Steady) -> None:
    change = within(max_per_address=2)
    async with steady.bed(change) as bed, peer(bed), peer(bed) as (reader, _):
        status, _, error = await told(reader)
        assert status == 503
        assert "an address may have 2 connections" in error["error"]["message"]


async def test_a_trusted_proxy_speaks_for_many(steady: Steady) -> None:
    security = SecuritySettings(trusted_proxies=("127.0.0.0/8",))
    async with steady.bed(within(max_per_address=1), security) as bed:
        for _ in range(3):
            await until_served(bed)


async def until_served(bed: Bed) -> None:
    """A connection that was closed may still be counted for a moment."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with httpx.AsyncClient(base_url=bed.url) as client:
                if (await client.get("/")).status_code == 200:
                    return


async def test_a_client_that_does_not_read_ends_its_generation(steady: Steady) -> None:
    async with steady.bed(within(send_timeout_s=0.2)) as bed:
        with socket.socket() as narrow:
            narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host, _, port = bed.service.http.rpartition(":")
            narrow.setblocking(False)
            await asyncio.get_running_loop().sock_connect(narrow, (host, int(port)))
            body = json.dumps({**ASKED, "stream": True, "max_tokens": FLOOD, **TOLD})
            asked = head(length=len(body)) + body.encode()
            await asyncio.get_running_loop().sock_sendall(narrow, asked)
            await until(lambda: CancelReason.CLIENT_GONE in bed.engine.cancels)


async def test_what_waits_for_a_client_is_bounded() -> None:
    """Of an application that writes without end."""
    written = 0
    gone = asyncio.Event()

    async def endless(_: Any, receive: Any, send: Any) -> None:
        nonlocal written
        await send({"type": "http.response.start", "status": 200, "headers": []})
        left = asyncio.create_task(until_left(receive))
        while not left.done():
            await send({"type": "http.response.body", "body": b"x" * 2**16, "more_body": True})
            written += 2**16
        gone.set()

    async def until_left(receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    door = Door(settings=ConnectionSettings(send_timeout_s=0.2))
    application: Any = endless
    async with listening(application, "127.0.0.1", 0, drain_s=1, door=door) as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            await gone.wait()
        writer.transport.abort()
        del reader
    assert written < 32 * 2**20


async def test_requests_in_a_row_are_answered_in_a_row(steady: Steady) -> None:
    paths = ["/v1/models", "/", "/nowhere"] * 100
    async with steady.bed(within()) as bed, peer(bed) as (reader, writer):
        writer.write(b"".join(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode() for path in paths))
        statuses = []
        for _ in paths:
            top = (await reader.readuntil(b"\r\n\r\n")).lower()
            statuses.append(int(top.split()[1]))
            await reader.readexactly(int(top.partition(b"content-length: ")[2].split()[0]))
    assert statuses == [200, 200, 404] * 100


CHUNKED = b"POST /tokenize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        (b"1\r\na\r\n" * (MAX_BODY_BYTES + 1), 413),
        (b"fffffff\r\n" + b"a" * (MAX_BODY_BYTES + 1), 413),
        (b"f" * 30 + b"\r\n", 400),
        (b"1;" + b"x" * 100_000, 431),
        (b"1\r\nab\r\n", 400),
    ],
)
async def test_chunks_are_bounded(steady: Steady, chunks: bytes, status: int) -> None:
    async with steady.bed(within()) as bed, peer(bed) as (reader, writer):
        writer.write(CHUNKED + chunks)
        found, _, error = await told(reader)
        assert found == status
        assert error["error"]["message"]
