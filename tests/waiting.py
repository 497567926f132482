"""How tests wait: for a condition, never for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE_S = 30


async def until(condition: Callable[[], object]) -> None:
    """Returns when the condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110  # it watches what has no event to wait for
            await asyncio.sleep(0.001)
