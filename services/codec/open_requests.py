"""The requests that a codec has taken and not finished."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from services.shared.errors import Unavailable

STOPPING = "the server is stopping, try again"


class OpenRequests:
    """Counts requests from their arrival to their last byte; closed, it takes none any more.

    Attributes:
        are_leaving: callers should go elsewhere; whoever comes all the same is taken until `close`.
    """

    def __init__(self) -> None:
        self._count = 0
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.are_leaving = False

    def refusal(self) -> Unavailable | None:
        """Why none is taken; None while they are."""
        return Unavailable(STOPPING) if self._is_closed else None

    @contextmanager
    def one(self) -> Iterator[None]:
        """Counts one while the block runs. Raises Unavailable when closed."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        self._count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    def close(self) -> None:
        self._is_closed = True

    async def idle(self, timeout_s: float | None) -> bool:
        """Waits until none is open; False when some still are after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
