"""More requests than the KV pool of the real engine holds: none is lost, no block leaks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.integration.stack import PATIENCE_S, Stack
from tests.waiting import until

REQUESTS = 40
CHAT = "/v1/chat/completions"


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=stack.url, timeout=PATIENCE_S, limits=limits
    ) as connected:
        yield connected


def mixed_bodies(stack: Stack, **changes: Any) -> list[dict[str, Any]]:
    """Prompts of 40 to 120 tokens and answers of 2 to 12, each of a length known before."""
    chance = random.Random(7)  # noqa: S311 no secret
    return [
        stack.chat(
            f"Number {number}: " + "tell me more. " * chance.randint(0, 20),
            max_tokens=chance.randint(2, 12),
            ignore_eos=True,
            **changes,
        )
        for number in range(REQUESTS)
    ]


async def no_block_leaks(stack: Stack) -> None:
    """Waits until the engine holds nothing, then counts its blocks."""

    def at_rest() -> bool:
        load = stack.engines[0].describe().load
        return load.running == load.waiting == 0

    await until(at_rest)
    load = stack.engines[0].describe().load
    assert load.free_blocks + load.cached_blocks == load.total_blocks
    assert load.outstanding_tokens == load.pending_prompt_tokens == 0


async def test_all_finish_on_a_pool_too_small_for_them(
    stack: Stack, client: httpx.AsyncClient
) -> None:
    bodies = mixed_bodies(stack)
    answers = await asyncio.gather(*(client.post(CHAT, json=body) for body in bodies))
    usages = [answer.json()["usage"] for answer in answers]
    assert [usage["completion_tokens"] for usage in usages] == [
        body["max_tokens"] for body in bodies
    ]
    load = stack.engines[0].describe().load
    pool_tokens = load.total_blocks * stack.engines[0].describe().block_size
    assert sum(usage["total_tokens"] for usage in usages) > 3 * pool_tokens
    await no_block_leaks(stack)


async def test_a_random_half_that_leaves_disturbs_nobody_and_frees_all(
    stack: Stack, client: httpx.AsyncClient
) -> None:
    bodies = mixed_bodies(stack, stream=True, stream_options={"include_usage": True})
    leaving = random.Random(8).sample(range(REQUESTS), REQUESTS // 2)  # noqa: S311 no secret
    waiting = leaving[: REQUESTS // 4]

    async def read(number: int) -> str:
        async with client.stream("POST", CHAT, json=bodies[number]) as answer:
            told = ""
            async for text in answer.aiter_text():
                told += text
                if number in leaving:
                    break
        return told

    reading = [asyncio.ensure_future(read(number)) for number in range(REQUESTS)]
    await until(lambda: stack.engines[0].describe().load.waiting)
    for number in waiting:
        reading[number].cancel()
    told = await asyncio.gather(*reading, return_exceptions=True)
    for number in set(range(REQUESTS)) - set(leaving):
        text = told[number]
        assert isinstance(text, str)
        assert f'"completion_tokens":{bodies[number]["max_tokens"]}' in text
        assert text.endswith("data: [DONE]\n\n")
    await no_block_leaks(stack)
    ends = [line["end"] for line in stack.engines[0].lines(message="generation ended")]
    assert "cancelled: client_gone" in ends
