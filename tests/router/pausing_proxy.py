"""A way to a server that can be made to carry nothing, while all connections stay up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

CHUNK_BYTES = 65536


class PausingProxy:
    """Carries bytes both ways while `flows` is set."""

    def __init__(self, target: str) -> None:
        self._host, _, self._port = target.rpartition(":")
        self.flows = asyncio.Event()
        self.flows.set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._host, int(self._port))
        with suppress(ConnectionError):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._one_way(reader, there[1]))
                group.create_task(self._one_way(there[0], writer))

    async def _one_way(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                await self.flows.wait()
                writer.write(chunk)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def pausing_proxy(target: str) -> AsyncIterator[tuple[PausingProxy, str]]:
    """A proxy before `target`, and its address."""
    proxy = PausingProxy(target)
    server = await asyncio.start_server(proxy.carry, "127.0.0.1", 0)
    try:
        yield proxy, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        proxy.flows.set()
        server.close()
