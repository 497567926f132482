"""Why a block does not come, as an error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from services.engine.kv.figures import TierFigures
from services.engine.kv.supply import Given
from services.shared.stream.events import CacheMiss


class Missed(Exception):
    """The next block does not come."""

    def __init__(self, cause: CacheMiss) -> None:
        super().__init__(cause.name.lower())
        self.cause = cause


async def counted(
    given: AsyncGenerator[Sequence[memoryview], None], missing: int, figures: TierFigures
) -> AsyncGenerator[Given, None]:
    """The blocks, counted as hits, and the cause if one is missed; it closes `given`.

    Args: missing: how many are wanted.
    """
    async with aclosing(given):
        try:
            async for blocks in given:
                missing -= len(blocks)
                figures.hit(len(blocks), sum(block.nbytes for block in blocks))
                yield blocks
        except Missed as missed:
            figures.miss(missed.cause, missing)
            yield missed.cause
