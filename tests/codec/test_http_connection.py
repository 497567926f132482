"""Peers that hold a connection without a request are hung up on; others are not."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from starlette.applications import Starlette

from services.codec import http_connection
from services.codec.connection_settings import ConnectionSettings
from services.codec.http_server import Door, listening
from tests.waiting import PATIENCE_S

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("before", "begun"), [(0, b""), (0, WHOLE[:8]), (0, WHOLE[:-2]), (1, WHOLE[:8])]
)
async def test_a_head_that_does_not_end_is_hung_up_on(before: int, begun: bytes) -> None:
    door = Door(settings=ConnectionSettings(header_timeout_s=0.05))
    async with listening(Starlette(), "127.0.0.1", 0, drain_s=1, door=door) as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(before):
                writer.write(WHOLE)
                await reader.readuntil(b"\r\n\r\nNot Found")
            writer.write(begun)
            heard = await reader.read()
        assert heard.startswith(b"HTTP/1.1 408" if begun else b"")
        assert bool(heard) == bool(begun)
        writer.close()


async def test_a_server_stops_while_one_is_sent_away() -> None:
    door = Door(settings=ConnectionSettings(max_headers=1))
    async with asyncio.timeout(PATIENCE_S):
        async with listening(Starlette(), "127.0.0.1", 0, drain_s=1, door=door) as server:
            host, _, port = server.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(WHOLE.replace(b"host", b"a: b\r\nhost"))
            assert (await reader.readline()).startswith(b"HTTP/1.1 431")
        writer.transport.abort()


async def test_small_writes_do_not_wait_for_acknowledgements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: list[int] = []
    made = http_connection.HttpConnection.connection_made

    def noted(connection: http_connection.HttpConnection, transport: asyncio.Transport) -> None:
        accepted = transport.get_extra_info("socket")
        options.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(connection, transport)

    monkeypatch.setattr(http_connection.HttpConnection, "connection_made", noted)
    async with listening(Starlette(), "127.0.0.1", 0, drain_s=1) as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(WHOLE)
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert options == [1]


async def test_a_request_that_takes_longer_is_answered() -> None:
    door = Door(settings=ConnectionSettings(header_timeout_s=0.001))
    over = asyncio.Event()

    async def slow(scope: object, receive: object, send: object) -> None:
        asyncio.get_running_loop().call_later(0.01, over.set)
        await over.wait()
        await application(scope, receive, send)  # type: ignore[arg-type]  # passed on

    application = Starlette()
    endless: Any = slow
    async with listening(endless, "127.0.0.1", 0, drain_s=1, door=door) as server:
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(WHOLE)
        assert (await asyncio.wait_for(reader.readline(), PATIENCE_S)).startswith(b"HTTP/1.1 404")
        writer.close()
