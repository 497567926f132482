"""Commands that wait for one connection of a session."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from tokenway.stream.v1 import stream_pb2 as pb


class Commands:
    """What is sent over one connection, in order; a closed one sends nothing more.

    Each connection has its own: the writer of a connection that broke off outlives it and would
    take a command meant for the next.
    """

    def __init__(self) -> None:
        self._waiting: deque[pb.SessionRequest] = deque()
        self._wake = asyncio.Event()
        self._closed = False

    def put(self, command: pb.SessionRequest) -> None:
        self._waiting.append(command)
        self._wake.set()

    def put_once(self, command: pb.SessionRequest) -> None:
        """Puts a command that is the same each time, unless it waits already."""
        if not any(waiting is command for waiting in self._waiting):
            self.put(command)

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[pb.SessionRequest]:
        while not self._closed:
            while self._waiting:
                yield self._waiting.popleft()
            self._wake.clear()
            await self._wake.wait()
