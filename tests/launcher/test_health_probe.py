"""`tokenway probe` tells by its status whether a service can serve."""

from __future__ import annotations

import asyncio
import socket

import pytest

from services.launcher import health_probe
from services.shared.health import Readiness
from services.shared.server import serving


async def probe(address: str, patience: str, *options: str) -> int:
    return await health_probe.probe([address, "--timeout", patience, *options])


async def test_only_a_service_that_is_ready_passes(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving("127.0.0.1:0", lambda _: None, [], grace_s=0) as door:
        assert await probe(door.address, "0.5") == 1
        await door.health.set(Readiness.READY)
        assert await probe(door.address, "30") == 0
        await door.health.set(Readiness.DRAINING)
        assert await probe(door.address, "0.5") == 1
    assert capsys.readouterr().err == f"{door.address} does not serve\n" * 2


async def test_a_service_that_is_not_ready_lives(capsys: pytest.CaptureFixture[str]) -> None:
    async with serving("127.0.0.1:0", lambda _: None, [], grace_s=0) as door:
        assert await probe(door.address, "30", "--live") == 0
        await door.health.tell_alive(alive=False)
        await door.health.set(Readiness.READY)
        assert await probe(door.address, "0.5", "--live") == 1
    assert capsys.readouterr().err == f"{door.address} does not live\n"


async def test_a_wait_ends_when_the_service_comes_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
    waiting = asyncio.ensure_future(health_probe.serving(address))
    async with serving(address, lambda _: None, [], grace_s=0) as door:
        await door.health.set(Readiness.READY)
        await asyncio.wait_for(waiting, 60)


async def test_a_http_address_is_asked_until_it_answers_200() -> None:
    answers = [b"503 Busy", b"404 No", b"200 OK"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + answers.pop(0) + b"\r\ncontent-length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await probe(f"http://127.0.0.1:{port}/readyz", "30") == 0
    assert not answers
    assert await probe(f"http://127.0.0.1:{port}/readyz", "0.3") == 1
