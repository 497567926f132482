"""Callers that ask without a pause, and know what they must be told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from tests.kv.prompts import prompt
from tests.kv.token_door import TokenDoor, request_of, token_door
from tests.waiting import until

CALLERS = 6


@dataclass(kw_only=True)
class Crowd:
    """Args: known: the output of each prompt, by its number.

    Attributes:
        answers: right ones so far.
        faults: what else there was.
    """

    door: TokenDoor
    known: Mapping[int, Sequence[int]]
    prompt_tokens: int
    answers: int = field(default=0, init=False)
    faults: list[str] = field(default_factory=list, init=False)

    async def more(self, answers: int = 1) -> None:
        """Returns when so many more were right; raises AssertionError if anything was not."""
        goal = self.answers + answers
        await until(lambda: self.answers >= goal or self.faults)
        assert self.faults == []

    async def ask_on(self, first: int) -> None:
        """Asks all in turn, again and again. Ends by cancellation."""
        numbers = list(self.known)
        at = first % len(numbers)
        while True:
            await self._ask(numbers[at])
            at = (at + 1) % len(numbers)

    async def _ask(self, number: int) -> None:
        right = self.known[number]
        try:
            asked = request_of(prompt(number, self.prompt_tokens), tokens=len(right))
            told = await self.door.ask(asked)
        except (grpc.aio.AioRpcError, AssertionError) as error:
            self.faults.append(f"prompt {number}: {error}")
            return
        if list(told.ids) == list(right):
            self.answers += 1
        else:
            self.faults.append(f"prompt {number}: {told.ids} where {right} is right")


async def known_by(
    address: str, prompts: int, prompt_tokens: int, tokens: int
) -> dict[int, Sequence[int]]:
    """What one engine or router answers to so many prompts, by their numbers."""
    async with token_door(address) as door:
        asked = [
            request_of(prompt(number, prompt_tokens), tokens=tokens) for number in range(prompts)
        ]
        told = await asyncio.gather(*map(door.ask, asked))
    return {number: one.ids for number, one in enumerate(told)}


@asynccontextmanager
async def crowd_at(
    address: str, known: Mapping[int, Sequence[int]], prompt_tokens: int
) -> AsyncIterator[Crowd]:
    """A crowd that has begun, and ends with the block."""
    async with token_door(address) as door:
        crowd = Crowd(door=door, known=known, prompt_tokens=prompt_tokens)
        callers = [asyncio.create_task(crowd.ask_on(7 * at)) for at in range(CALLERS)]
        try:
            await crowd.more()
            yield crowd
        finally:
            for caller in callers:
                caller.cancel()
            await asyncio.wait(callers)
        assert crowd.faults == []
