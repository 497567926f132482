"""Something that runs for ever and can be cut for a while, as a network would."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Cuttable:
    """Runs what is given, and begins it again after each cut."""

    def __init__(self, begin: Callable[[], Awaitable[None]]) -> None:
        self._begin = begin
        self._scope: asyncio.Timeout | None = None
        self._until = float("-inf")

    async def run(self) -> None:
        """Ends by cancellation, or with what it runs."""
        while True:
            await self._opened()
            try:
                async with asyncio.timeout(None) as scope:
                    self._scope = scope
                    return await self._begin()
            except TimeoutError:
                if not scope.expired():
                    raise
            finally:
                self._scope = None

    def cut(self, duration_s: float) -> None:
        """Cancels what runs, and keeps it from beginning again for so long at least."""
        now = asyncio.get_running_loop().time()
        self._until = max(self._until, now + duration_s)
        if self._scope is not None:
            self._scope.reschedule(now)

    async def _opened(self) -> None:
        """Returns when no cut lasts any more; each may become longer meanwhile."""
        loop = asyncio.get_running_loop()
        while self._until > loop.time():  # noqa: ASYNC110  # it waits for a time
            await asyncio.sleep(self._until - loop.time())
