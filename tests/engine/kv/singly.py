"""What a supply gives, one block at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.engine.kv.supply import Given
from services.shared.stream.events import CacheMiss


async def singly(
    given: AsyncGenerator[Given, None],
) -> AsyncGenerator[memoryview | CacheMiss, None]:
    async with aclosing(given):
        async for part in given:
            if isinstance(part, CacheMiss):
                yield part
            else:
                for block in part:
                    yield block
