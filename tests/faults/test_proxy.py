"""What the proxy between services does to connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.proxy import Proxy, proxy_to

ENDED = (ConnectionResetError, asyncio.IncompleteReadError)

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        with proxy_to(f"{host}:{port}") as between:
            yield between


@asynccontextmanager
async def connection(proxy: Proxy) -> AsyncIterator[Ends]:
    host, _, port = proxy.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def said_back(ends: Ends, text: bytes) -> bytes:
    reader, writer = ends
    writer.write(text)
    return await reader.readexactly(len(text))


async def is_reset(proxy: Proxy) -> None:
    """While it connects, or right after."""
    with pytest.raises(ConnectionResetError):
        async with connection(proxy) as ends:
            await ends[0].read()


async def test_a_cut_resets_what_is_connected_and_nothing_later(proxy: Proxy) -> None:
    async with connection(proxy) as ends:
        assert await said_back(ends, b"one") == b"one"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await ends[0].read()
    async with connection(proxy) as ends:
        assert await said_back(ends, b"two") == b"two"


async def test_what_is_held_comes_late_and_whole(proxy: Proxy) -> None:
    async with connection(proxy) as ends:
        assert await said_back(ends, b"one") == b"one"
        proxy.hold()
        held = asyncio.ensure_future(said_back(ends, b"two"))
        with proxy_to(proxy.address) as other:  # its thread begins and ends in the meantime
            assert other.address
        assert not held.done()
        proxy.restore()
        assert await held == b"two"


async def test_a_proxy_that_refuses_resets_each_connection_until_it_is_restored(
    proxy: Proxy,
) -> None:
    proxy.refuse()
    await is_reset(proxy)
    proxy.restore()
    async with connection(proxy) as ends:
        assert await said_back(ends, b"one") == b"one"


async def test_nobody_behind_it_is_a_reset() -> None:
    with proxy_to("127.0.0.1:1") as dead:
        await is_reset(dead)


async def test_what_is_delayed_comes_whole(proxy: Proxy) -> None:
    async with connection(proxy) as ends:
        proxy.delay(0.01)
        assert await said_back(ends, b"one") == b"one"


async def test_one_bit_in_so_many_bytes_of_an_answer_is_wrong(proxy: Proxy) -> None:
    async with connection(proxy) as ends:
        proxy.flip(4)
        heard = await said_back(ends, bytes(6)) + await said_back(ends, bytes(6))
        proxy.restore()
        assert await said_back(ends, bytes(6)) == bytes(6)
    assert [at for at, byte in enumerate(heard) if byte] == [3, 7, 11]
    assert all(byte.bit_count() < 2 for byte in heard)


async def test_an_answer_ends_in_its_middle_and_so_do_later_ones_until_it_is_restored(
    proxy: Proxy,
) -> None:
    async with connection(proxy) as ends:
        proxy.truncate(3)
        with pytest.raises(ENDED):
            await said_back(ends, b"four")
    async with connection(proxy) as ends:
        with pytest.raises(ENDED):
            await said_back(ends, b"one")
    proxy.restore()
    async with connection(proxy) as ends:
        assert await said_back(ends, b"one") == b"one"
