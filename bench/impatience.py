"""How clients come again when they are refused, and one request that lives by it."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.raw_http import Connection, request_bytes

PATIENCE_S = 45.0
"""Whoever has no answer by then gives up."""

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


@dataclass(frozen=True, kw_only=True, slots=True)
class Manner:
    """How one kind of client asks again.

    Args:
        path: the protocol that it speaks.
        tries: requests until it gives up.
        first_s: its own pause after the first refusal.
        growth: how much longer each pause is than the one before.
        honours: whether it waits as long as it was told, where that is longer.
    """

    path: str
    tries: int
    first_s: float
    growth: float
    honours: bool

    def pauses(self) -> Iterator[float]:
        pause_s = self.first_s
        for _ in range(self.tries - 1):
            yield pause_s
            pause_s *= self.growth


MANNERS = {
    "claude-code": Manner(path=MESSAGES, tries=10, first_s=1.0, growth=1.6, honours=True),
    "codex": Manner(path=RESPONSES, tries=30, first_s=0.2, growth=1.15, honours=False),
    "opencode": Manner(path=CHAT, tries=9, first_s=2.0, growth=2.0, honours=True),
    "continue": Manner(path=CHAT, tries=24, first_s=1.0, growth=1.0, honours=False),
    "pi": Manner(path=CHAT, tries=12, first_s=1.0, growth=1.5, honours=True),
    "qwen-code": Manner(path=CHAT, tries=20, first_s=1.0, growth=1.1, honours=False),
    "sdk": Manner(path=CHAT, tries=3, first_s=0.5, growth=2.0, honours=True),
    "impatient": Manner(path=CHAT, tries=30, first_s=0.1, growth=1.0, honours=False),
}
"""As such clients were seen to behave; the last one stands for scripts that just loop."""


@dataclass(slots=True)
class Tally:
    """What the clients of a phase met: answers by status, and when good ones came."""

    statuses: Counter[int] = field(default_factory=Counter)
    good_at: list[float] = field(default_factory=list)
    given_up: int = 0

    def good_within(self, begin: float, end: float) -> int:
        return sum(begin <= at < end for at in self.good_at)


async def asks(address: str, manner: Manner, request: bytes, tally: Tally) -> None:
    """One request of a client, with all its repeats."""
    connection = Connection(address)
    try:
        async with asyncio.timeout(PATIENCE_S):
            if not await _tried(connection, manner, request, tally):
                tally.given_up += 1
    except TimeoutError:
        tally.given_up += 1
    finally:
        connection.close()


async def _tried(connection: Connection, manner: Manner, request: bytes, tally: Tally) -> bool:
    for pause_s in [*manner.pauses(), 0.0]:
        answer = await connection.ask(request)
        tally.statuses[answer.status] += 1
        if answer.status == 200:
            tally.good_at.append(time.monotonic())
            return True
        await asyncio.sleep(max(pause_s, answer.retry_after_s if manner.honours else 0.0))
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What each request wants: a prompt of its own of so many words, and so many tokens."""

    model: str
    words: int
    max_tokens: int

    def request(self, path: str, name: str) -> bytes:
        text = f"{name} " + "word " * self.words
        messages = [{"role": "user", "content": text}]
        limit = "max_output_tokens" if path == RESPONSES else "max_tokens"
        prompt = {"input": text} if path == RESPONSES else {"messages": messages}
        body = {"model": self.model, limit: self.max_tokens, "ignore_eos": True, **prompt}
        return request_bytes(path, body, key=name)


async def arriving(
    address: str, asked: Asked, rate: float, duration_s: float, seed: int = 0
) -> Tally:
    """New clients at `rate` a second for so long, of all manners in turn; then until all are done.

    Args:
        rate: clients a second, who come as they like (a Poisson process).
    """
    chance = random.Random(seed)  # noqa: S311 no secret
    tally = Tally()
    end = time.monotonic() + duration_s
    async with asyncio.TaskGroup() as clients:
        at, number, names = time.monotonic(), 0, list(MANNERS)
        while at < end:
            manner = MANNERS[names[number % len(names)]]
            request = asked.request(manner.path, f"{seed}-{number}")
            clients.create_task(asks(address, manner, request, tally))
            number += 1
            at += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, at - time.monotonic()))
        await asyncio.sleep(max(0.0, end - time.monotonic()))
    return tally
