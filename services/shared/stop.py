"""What signals ask of a process: to stop, and then to wait for nobody who has not heard of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Stop:
    """Asked once, a service settles and drains; asked twice, it settles no longer."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._hurried = asyncio.Event()

    def ask(self) -> None:
        """What each signal calls."""
        if self._asked.is_set():
            self._hurried.set()
        self._asked.set()

    def at_once(self) -> None:
        """Asks and hurries, for a process that cannot go on."""
        self._asked.set()
        self._hurried.set()

    async def asked(self) -> None:
        """Returns when somebody has asked."""
        await self._asked.wait()

    async def settled(self, settle_s: float) -> None:
        """Returns after `settle_s` seconds, or when asked again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(settle_s):
                await self._hurried.wait()
