"""Connections to other engines, kept while they are of use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc

from services.shared.tls.way import Way

IDLE_S = 120.0
"""How long a connection is kept that nobody uses."""


@dataclass(eq=False, slots=True)
class _Kept:
    channel: grpc.aio.Channel
    version: int
    users: int = 0
    closing: asyncio.TimerHandle | None = None


class PeerChannels:
    """One channel for each peer, on the event loop's thread.

    Where other certificates count than when it was made, who is new gets another channel, and the
    old one is closed after its last user.

    Args:
        way: to other engines.
        idle_s: seconds that an unused channel stays open.
    """

    def __init__(self, way: Way, idle_s: float = IDLE_S) -> None:
        self._way = way
        self._idle_s = idle_s
        self._kept: dict[str, _Kept] = {}
        self._retired: set[_Kept] = set()
        self._endings: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def to(self, peer: str) -> Iterator[grpc.aio.Channel]:
        """The channel to `host:port`, which stays open inside."""
        kept = self._current(peer)
        if kept.closing is not None:
            kept.closing.cancel()
        kept.users += 1
        try:
            yield kept.channel
        finally:
            kept.users -= 1
            if not kept.users:
                self._unused(peer, kept)

    async def close(self) -> None:
        """Ends all connections, and the calls on them."""
        for peer in list(self._kept):
            self._drop(peer)
        for kept in list(self._retired):
            self._end_retired(kept)
        await asyncio.gather(*self._endings)

    def _current(self, peer: str) -> _Kept:
        kept = self._kept.get(peer)
        if kept is not None and kept.version != self._way.version:
            if kept.users:
                self._retired.add(self._kept.pop(peer))
            else:
                self._drop(peer)
            kept = None
        if kept is None:
            kept = self._kept[peer] = _Kept(self._way.dial(peer), self._way.version)
        return kept

    def _unused(self, peer: str, kept: _Kept) -> None:
        if self._kept.get(peer) is kept:
            home = asyncio.get_running_loop()
            kept.closing = home.call_later(self._idle_s, self._drop, peer)
        elif kept in self._retired:
            self._end_retired(kept)

    def _end_retired(self, kept: _Kept) -> None:
        self._retired.remove(kept)
        self._end(kept)

    def _drop(self, peer: str) -> None:
        self._end(self._kept.pop(peer))

    def _end(self, kept: _Kept) -> None:
        if kept.closing is not None:
            kept.closing.cancel()
        ending = asyncio.ensure_future(kept.channel.close(grace=None))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
