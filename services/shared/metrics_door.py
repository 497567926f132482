"""Metrics over HTTP, for Prometheus to scrape."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from services.shared.server import CannotListen

PATH = "/metrics"
MAX_HEAD_BYTES = 16_384
MAX_CONNECTIONS = 16
PATIENCE_S = 5.0
"""How long whoever asks has to say what and to take the answer."""


@asynccontextmanager
async def metrics_door(host: str, port: int, registry: CollectorRegistry) -> AsyncIterator[str]:
    """Answers `GET /metrics` in the text format inside the block; gives its `host:port`.

    One answer to a connection; more than MAX_CONNECTIONS at a time are hung up on.

    Args:
        host: where it listens.
        port: 0 takes a free one.
        registry: what is told.

    Raises:
        CannotListen: the address is taken or is none of this machine.
    """
    door = _Door(registry)
    try:
        server = await asyncio.start_server(door.answer, host, port, limit=MAX_HEAD_BYTES)
    except OSError as error:
        raise CannotListen(
            f"cannot listen at {host}:{port} for metrics: "
            "the port is taken or the host is not of this machine"
        ) from error
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await door.close()
        await server.wait_closed()


class _Door:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._answering: set[asyncio.Task[None]] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its end."""
        task = asyncio.ensure_future(self._told(reader, writer))
        self._answering.add(task)
        try:
            await task
        finally:
            self._answering.discard(task)

    async def close(self) -> None:
        """Ends what has not ended."""
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _told(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broken = (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
        try:
            with suppress(*broken):
                async with asyncio.timeout(PATIENCE_S):
                    if len(self._answering) <= MAX_CONNECTIONS:
                        writer.write(self._response(await reader.readuntil(b"\r\n\r\n")))
                        await writer.drain()
        finally:
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != PATH.encode():
            return _response(HTTPStatus.NOT_FOUND)
        if method != b"GET":
            return _response(HTTPStatus.METHOD_NOT_ALLOWED)
        return _response(HTTPStatus.OK, generate_latest(self._registry))


def _response(status: HTTPStatus, body: bytes = b"") -> bytes:
    lines = (
        f"HTTP/1.1 {status} {status.phrase}",
        f"Content-Type: {CONTENT_TYPE_PLAIN_0_0_4}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + body
