"""Answers that tests compare to the last digit, and how much of their prompts was cached."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from tests.faults.answer import Answer
from tests.faults.asked import Asked
from tests.faults.listener import Listener
from tests.integration.stack import PATIENCE_S, Stack

_PROMPT = re.compile(r'"prompt_tokens":(\d+)')
_CACHED = re.compile(r'"cached_tokens":(\d+)')
_LOGPROB = re.compile(r'"logprob":(-?[0-9.e-]+)')


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """Equal where the answers are, whatever of their prompts was cached.

    Args:
        answer: without log-probabilities.
        logprobs: all of them in their order, as they were written.
    """

    answer: Answer
    logprobs: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """What one request after the other was answered, by its name.

    Args:
        prompt_tokens: of each.
        cached_tokens: of them, those that were found somewhere.
    """

    heard: Mapping[str, Heard]
    prompt_tokens: Sequence[int]
    cached_tokens: Sequence[int]

    def usable_blocks(self, block_tokens: int = 16) -> Sequence[int]:
        """Blocks of each prompt that a cache can give: of all tokens but the last."""
        return [(tokens - 1) // block_tokens for tokens in self.prompt_tokens]


def heard_by(listener: Listener, answer: Answer) -> Heard:
    """Raises AssertionError unless the answer is complete."""
    assert answer.complete, f"{listener.asked.name}: {answer}"
    return Heard(answer=answer, logprobs=_LOGPROB.findall(listener.text))


async def ask_all(stack: Stack, asked: Sequence[Asked], name: str) -> Round:
    """Rounds of one name share blocks; those of different names do not."""
    listeners = [Listener(one, f"{name}.{at}") for at, one in enumerate(asked)]
    heard: dict[str, Heard] = {}
    async with client_of(stack) as client:
        for listener in listeners:
            answer = await listener.hear(client)
            heard[listener.asked.name] = heard_by(listener, answer)
    return Round(
        heard=heard,
        prompt_tokens=[_last(_PROMPT, listener.text) for listener in listeners],
        cached_tokens=[_last(_CACHED, listener.text) for listener in listeners],
    )


async def ask_together(
    stack: Stack, asked: Sequence[Asked], name: str, meanwhile: Awaitable[None]
) -> list[Heard]:
    """What all are answered, in their order, while something happens."""
    listeners = [Listener(one, f"{name}.{at}") for at, one in enumerate(asked)]
    async with client_of(stack) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(listener.hear(client)) for listener in listeners]
        await meanwhile
    return [
        heard_by(listener, task.result()) for listener, task in zip(listeners, tasks, strict=True)
    ]


def client_of(stack: Stack) -> httpx.AsyncClient:
    """Asks as many at a time as it is told to."""
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S, limits=limits)


def _last(pattern: re.Pattern[str], text: str) -> int:
    """The number as the end of an answer tells it; 0 where nothing was cached."""
    found = pattern.findall(text)
    return int(found[-1]) if found else 0
