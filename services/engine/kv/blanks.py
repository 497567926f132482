"""Blanks for what comes, a few at a time."""

from __future__ import annotations

from functools import partial

from services.engine.asking import asked
from services.engine.kv.fill import Fill
from services.engine.kv.fill_desk import PORTION, FillDesk
from services.engine.loop import EngineLoop


class Blanks:
    """Those of one fill. For the event loop's thread.

    The step loop gives a portion of them between two steps, since others may have to give way for
    each. The next portion is asked for before the last one is used up.
    """

    def __init__(self, fill: Fill, loop: EngineLoop, desk: FillDesk) -> None:
        self._fill = fill
        self._loop = loop
        self._desk = desk
        self._asked_for = PORTION

    async def next(self, count: int) -> list[int]:
        """Blanks for the next blocks that come, PORTION at most; fewer where there is no room."""
        fill, begin = self._fill, len(self._fill.tiers)
        end = begin + count
        if end + PORTION // 2 > self._asked_for and self._asked_for < len(fill.missing):
            self._asked_for += PORTION
            self._loop.command(partial(self._desk.extend, fill))
        if end > len(fill.blanks):
            await asked(self._loop, partial(self._desk.extend, fill))
        return fill.blanks[begin:end]
