"""Each token of a prompt is counted once, however often it is computed."""

from __future__ import annotations

import pytest

from services.engine.prompt_count import PromptCount, PromptTokens
from services.engine.scheduler import Limits
from services.shared.stream.events import CachedTokens, Finished
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.harness import Harness, simulated


def generation(number: int, prompt: int, generated: tuple[int, ...] = ()) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + (number * 7 + index) % 900 for index in range(prompt)],
        generated_ids=generated,
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=12),
    )


def test_a_prompt_is_told_once_when_it_is_complete() -> None:
    count = PromptCount(10)
    assert not count.compute(0, 4)
    assert not count.compute(4, 5)
    assert count.compute(9, 3), "with two tokens that are no prompt"
    assert (count.computed, count.reached) == (10, 10)
    assert not count.compute(12, 1)
    assert not count.compute(0, 10), "again, after it lost its place"
    assert count.computed == 10


def test_what_another_computed_meanwhile_is_found() -> None:
    count = PromptCount(10, reached=2)
    count.compute(2, 2)
    count.find(8)
    assert count.compute(8, 2)
    told = PromptTokens().plus(count, CachedTokens(host=2))
    assert told == PromptTokens(tokens=10, computed=4, cached=CachedTokens(device=4, host=2))


def test_what_was_found_before_is_not_found_again() -> None:
    count = PromptCount(10, reached=6)
    count.find(4)
    assert (count.reached, count.found_again) == (6, 0)
    assert count.compute(4, 6)
    assert count.computed == 4


@pytest.mark.parametrize("blocks", [14, 200], ids=["some give way", "all have room"])
def test_prompts_are_what_was_computed_and_what_was_found(blocks: int) -> None:
    harness = Harness(simulated(blocks=blocks), Limits(max_batch_size=8, token_budget=7))
    generations = [generation(number % 7, prompt=5 + 3 * (number % 7)) for number in range(10)]
    harness.outputs(generations)
    progress = harness.loop.progress
    prompts = progress.figures.prompts
    assert prompts.tokens == sum(len(one.prompt_ids) for one in generations)
    assert prompts.tokens == prompts.computed + prompts.cached.total
    assert progress.figures.output_tokens == 12 * len(generations)
    preemptions = [
        event.timeline.preemptions
        for events in harness.events.values()
        for event in events
        if isinstance(event, Finished)
    ]
    assert progress.preemptions == sum(preemptions)
    assert (progress.preemptions > 0) == (progress.recomputed_tokens > 0) == (blocks == 14)


def test_of_a_continued_generation_the_prompt_alone_is_counted() -> None:
    harness = Harness(simulated(blocks=200))
    (whole,) = harness.outputs([generation(1, 10)])
    harness.add(generation(1, 10, generated=tuple(whole[:9])))
    harness.run()
    prompts = harness.loop.progress.figures.prompts
    assert prompts == PromptTokens(tokens=20, computed=10, cached=CachedTokens(device=10))
