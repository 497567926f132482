"""Several answers to one prompt, over a codec on loopback before a scripted engine."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from services.shared.errors import Overloaded
from services.shared.stream.events import CancelReason
from services.shared.stream.generation import MAX_SEED, Generation
from tests.codec_bed import MODEL, BedMaker
from tests.scripted_engine import Step
from tests.waiting import until

MESSAGES: Any = [{"role": "user", "content": "hi"}]


async def test_each_answer_draws_with_a_seed_of_its_own(beds: BedMaker) -> None:
    async with beds.bed(beds.engine(beds.says("well", group=2))) as bed:
        made = await bed.openai.chat.completions.create(
            model=MODEL,
            messages=MESSAGES,
            n=3,
            seed=-2,
        )
        seeds = [generation.sampling.seed for generation in bed.engine.generations]
        names = {generation.request_id for generation in bed.engine.generations}
    assert [(choice.index, choice.message.content) for choice in made.choices] == [
        (index, "well") for index in range(3)
    ]
    assert seeds == [MAX_SEED - 1, MAX_SEED, 0]
    assert len(names) == 3
    assert made.usage is not None
    prompt = len(bed.engine.generations[0].prompt_ids)
    assert made.usage.prompt_tokens == prompt
    assert made.usage.completion_tokens == 3 * len(beds.encoder.encode_text("well"))


async def test_more_answers_than_allowed_are_refused(beds: BedMaker) -> None:
    async with beds.bed(beds.engine(beds.says("well"))) as bed:
        with pytest.raises(openai.BadRequestError, match="n must be <= 8, got 9"):
            await bed.openai.chat.completions.create(
                model=MODEL,
                messages=MESSAGES,
                n=9,
            )
    assert not bed.engine.submissions


async def test_caller_who_leaves_ends_all_answers(beds: BedMaker) -> None:
    def script(_: Generation) -> list[Step]:
        return [beds.encoder.encode_text("so"), asyncio.Event()]

    async with beds.bed(beds.engine(script)) as bed:
        stream: Any = await bed.openai.chat.completions.create(
            model=MODEL,
            messages=MESSAGES,
            n=2,
            stream=True,
        )
        await anext(stream)
        await stream.close()
        await until(lambda: len(bed.engine.cancels) == 2)
    assert set(bed.engine.cancels) == {CancelReason.CLIENT_GONE}


async def test_refusal_of_one_answer_ends_the_others(beds: BedMaker) -> None:
    taken: list[Generation] = []

    def script(generation: Generation) -> list[Step]:
        taken.append(generation)
        if len(taken) == 2:
            raise Overloaded("full")
        return [asyncio.Event()]

    async with beds.bed(beds.engine(script)) as bed:
        with pytest.raises(openai.APIStatusError):
            await bed.openai.chat.completions.create(
                model=MODEL,
                messages=MESSAGES,
                n=2,
            )
        await until(lambda: len(bed.engine.cancels) >= 1)
