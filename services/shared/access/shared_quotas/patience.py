"""A time limit that blames nobody for what this process itself was late with."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LOOKS = 5
"""Turns of the event loop after the limit: a loop that stood still finds what came meanwhile."""


async def within(timeout_s: float, work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """What `work` gives. Raises TimeoutError, with the work cancelled, when it takes longer."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=timeout_s)
        for _ in range(LOOKS):
            if task.done():
                break
            await asyncio.sleep(0)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
