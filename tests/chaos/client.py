"""A client of a chaos run: it asks, and judges what it is told by the undisturbed answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.chaos.door import Broken, Door
from tests.chaos.history import History
from tests.chaos.verdict import Verdict, judged
from tests.faults.answer import Answer
from tests.faults.asked import Asked

PAUSE_S = 0.2
"""Before a client that failed asks again."""


@dataclass(frozen=True, slots=True)
class Known:
    """A request, and what it is answered when nothing breaks."""

    asked: Asked
    answer: Answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """Args: chance: decides what it asks; names: of requests, shared by all clients."""

    door: Door
    known: Sequence[Known]
    chance: Random
    names: Iterator[str]
    history: History

    async def run(self, until_s: float) -> None:
        """One request after the other, until that time of the event loop."""
        while asyncio.get_running_loop().time() < until_s:
            one = self.chance.choice(self.known)
            request = next(self.names)
            self.history.note("asked", request=request, asked=one.asked.name)
            verdict, why = await self._verdict(one, request)
            told = {"request": request, "door": self.door.name, "verdict": verdict, "why": why}
            self.history.note("told", **told)
            if verdict is not Verdict.EXACT:
                await asyncio.sleep(PAUSE_S)

    async def _verdict(self, one: Known, request: str) -> tuple[Verdict, str]:
        try:
            answer = await self.door.ask(one.asked, request)
        except Broken as broken:
            return Verdict.UNEXPLAINED, str(broken)
        return judged(answer, one.answer)
