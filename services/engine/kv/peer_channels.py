"""Connections to other engines, kept while they are of use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from services.shared.channel import open_channel

IDLE_S = 120.0
"""How long a connection is kept that nobody uses."""


@dataclass(slots=True)
class _Kept:
    channel: grpc.aio.Channel
    users: int = 0
    closing: asyncio.TimerHandle | None = None


class PeerChannels:
    """One channel for each peer, on the event loop's thread.

    Args:
        credentials: of mutual TLS; None for connections in the clear.
        idle_s: seconds that an unused channel stays open.
    """

    def __init__(
        self, credentials: grpc.ChannelCredentials | None = None, idle_s: float = IDLE_S
    ) -> None:
        self._credentials = credentials
        self._idle_s = idle_s
        self._kept: dict[str, _Kept] = {}
        self._endings: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def to(self, peer: str) -> Iterator[grpc.aio.Channel]:
        """The channel to `host:port`, which stays open inside."""
        kept = self._kept.get(peer)
        if kept is None:
            kept = self._kept[peer] = _Kept(open_channel(peer, self._credentials))
        if kept.closing is not None:
            kept.closing.cancel()
        kept.users += 1
        try:
            yield kept.channel
        finally:
            kept.users -= 1
            if not kept.users and peer in self._kept:
                home = asyncio.get_running_loop()
                kept.closing = home.call_later(self._idle_s, self._drop, peer)

    async def close(self) -> None:
        """Ends all connections, and the calls on them."""
        for peer in list(self._kept):
            self._drop(peer)
        await asyncio.gather(*self._endings)

    def _drop(self, peer: str) -> None:
        kept = self._kept.pop(peer)
        if kept.closing is not None:
            kept.closing.cancel()
        ending = asyncio.ensure_future(kept.channel.close(grace=None))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
