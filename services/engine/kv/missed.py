"""Why a block does not come, as an error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from services.engine.kv.figures import TierFigures
from services.shared.stream.events import CacheMiss


class Missed(Exception):
    """The next block does not come."""

    def __init__(self, cause: CacheMiss) -> None:
        super().__init__(cause.name.lower())
        self.cause = cause


async def counted(
    blocks: AsyncGenerator[memoryview, None], missing: int, figures: TierFigures
) -> AsyncGenerator[memoryview | CacheMiss, None]:
    """The blocks, counted as hits, and the cause if one is missed; it closes `blocks`.

    Args: missing: how many are wanted.
    """
    async with aclosing(blocks):
        try:
            async for payload in blocks:
                missing -= 1
                figures.hit(1, payload.nbytes)
                yield payload
        except Missed as missed:
            figures.miss(missed.cause, missing)
            yield missed.cause
