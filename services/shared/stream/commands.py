"""Commands that wait for one connection of a session."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator

from tokenway.stream.v1 import stream_pb2 as pb


class Commands:
    """What is sent over one connection, in order; a closed one sends nothing more.

    Each connection has its own: the writer of a connection that broke off outlives it and would
    take a command meant for the next. For a server that does not read waits no more than what is
    still wanted of it: what is asked twice waits once, and what is taken back does not wait at all.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[tuple[str, int], pb.SessionRequest] = OrderedDict()
        self._wake = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, command: pb.SessionRequest) -> None:
        kind, stream_id = _name(command)
        if kind != "cancel" or self._waiting.pop(("submit", stream_id), None) is None:
            self._waiting.setdefault((kind, stream_id), command)
            self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[pb.SessionRequest]:
        while not self._closed:
            while self._waiting:
                yield self._waiting.popitem(last=False)[1]
            self._wake.clear()
            await self._wake.wait()


def _name(command: pb.SessionRequest) -> tuple[str, int]:
    """What it is and of which stream; commands of one name are the same."""
    match command.WhichOneof("command"):
        case "submit":
            return "submit", command.submit.stream_id
        case "cancel":
            return "cancel", command.cancel.stream_id
        case _:
            return "watch_blocks", 0
