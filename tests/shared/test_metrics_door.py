"""What is told over HTTP to whoever scrapes, and to whoever does not."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from services.shared import metrics_door as door
from services.shared.metrics_door import metrics_door
from services.shared.server import CannotListen
from tests.raw_peer import speak


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("seen", "What was seen.", ["kind"], registry=registry).labels("owl").inc(3)
    return registry


async def get(address: str, path: str = "/metrics", method: str = "GET") -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.request(method, f"http://{address}{path}")


async def test_a_scrape_is_answered_in_the_text_format(registry: CollectorRegistry) -> None:
    async with metrics_door("127.0.0.1", 0, registry) as address:
        for path in ("/metrics", "/metrics?x=1"):
            told = await get(address, path)
            assert told.status_code == 200
            assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
        (family, *_) = text_string_to_metric_families(told.text)
        assert [(one.name, one.labels, one.value) for one in family.samples] == [
            ("seen_total", {"kind": "owl"}, 3)
        ]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/metrics/x", 404), ("POST", "/metrics", 405)],
)
async def test_nothing_else_is_served(
    registry: CollectorRegistry, method: str, path: str, status: int
) -> None:
    async with metrics_door("127.0.0.1", 0, registry) as address:
        assert (await get(address, path, method)).status_code == status


@pytest.mark.parametrize(
    "said", [b"", b"\0" * 40_000, b"GET /metrics HTTP/1.1\r\nx: " + b"a" * 40_000, b"\r\n\r\n"]
)
async def test_garbage_is_hung_up_on_and_the_next_is_answered(
    registry: CollectorRegistry, said: bytes
) -> None:
    async with metrics_door("127.0.0.1", 0, registry) as address:
        assert b"seen" not in await speak(address, said)
        assert (await get(address)).status_code == 200


async def test_peers_that_say_nothing_are_bounded_and_do_not_hold_the_end(
    registry: CollectorRegistry,
) -> None:
    async with metrics_door("127.0.0.1", 0, registry) as address:
        host, _, port = address.rpartition(":")
        peers = [
            await asyncio.open_connection(host, int(port)) for _ in range(door.MAX_CONNECTIONS)
        ]
        assert await speak(address, b"GET /metrics HTTP/1.1\r\n\r\n") == b""
        reader, writer = peers.pop()
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert b"seen_total" in await reader.read()
        writer.close()
    for reader, writer in peers:
        assert not await reader.read()
        writer.close()


async def test_a_taken_port_is_named(registry: CollectorRegistry) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"cannot listen at 127.0.0.1:{port} for metrics"):
            async with metrics_door("127.0.0.1", port, registry):
                pass
