"""Events that wait for one reader, merged by stream."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar, cast

from services.shared.stream.events import Tokens

Item = TypeVar("Item")

MAX_STREAMS = 8192


class Outbox(Generic[Item]):
    """Holds the events of many streams between a step and the wire.

    Positions make merging safe: the tokens that wait for a stream are one event, so an outbox never
    holds more than its generations' lengths, however slow its reader is.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, list[Item]] = {}
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self.closed = False

    def put(self, stream_id: int, event: Item) -> None:
        waiting = self._waiting.get(stream_id)
        if waiting is None:
            if not self._waiting:
                self._wake.set()
            self._waiting[stream_id] = [event]
        elif isinstance(event, Tokens):
            _merge(cast("list[object]", waiting), event)
        elif event not in waiting:
            waiting.append(event)

    def drop(self, stream_id: int) -> None:
        """Forgets what waits for a stream."""
        self._waiting.pop(stream_id, None)

    def take(self) -> dict[int, list[Item]]:
        """All that waits: stream to events in order."""
        taken, self._waiting = self._waiting, {}
        self._wake.clear()
        self._taken.set()
        return taken

    async def room(self) -> None:
        """Returns when fewer than MAX_STREAMS wait: who does not read is not listened to either."""
        while len(self._waiting) >= MAX_STREAMS:
            self._taken.clear()
            await self._taken.wait()

    async def filled(self, timeout_s: float | None = None) -> None:
        """Returns when something waits, when the outbox is closed, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def wake(self) -> None:
        """Has the reader look, though nothing may wait."""
        self._wake.set()

    def close(self) -> None:
        """Wakes the reader for the last time."""
        self.closed = True
        self.wake()


def _merge(waiting: list[object], tokens: Tokens) -> None:
    for index, earlier in enumerate(waiting):
        if isinstance(earlier, Tokens):
            waiting[index] = earlier.followed_by(tokens)
            return
    waiting.append(tokens)
