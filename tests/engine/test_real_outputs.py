"""Outputs of the real model do not depend on neighbours, chunks, preemption or cache hits."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from services.engine.model.llama import LlamaModel
from services.engine.scheduler import Limits
from services.shared.model_folder import ModelFolder
from services.shared.stream.events import Finished
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.harness import Harness
from tests.engine.real_parts import real_parts

ROOMY = Limits(max_batch_size=16, token_budget=128)


@pytest.fixture(scope="module")
def model(model_folder: ModelFolder) -> LlamaModel:
    return LlamaModel.load(model_folder, device=torch.device("cpu"))


def harness(model: LlamaModel, blocks: int = 200, limits: Limits = ROOMY) -> Harness:
    return Harness(real_parts(model, blocks), limits)


def generations(count: int = 6) -> list[Generation]:
    """Greedy and seeded in turn; prompts of several lengths that share a beginning."""
    words = [504, 3575, 282, 4649, 314, 7042, 30, 378]
    return [
        Generation(
            request_id=f"r{number}",
            prompt_ids=[1, *words * 4, *(900 + number + index for index in range(13 * number))],
            sampling=Sampling(
                temperature=0.8 if number % 2 else 0.0,
                top_p=0.95 if number % 4 == 3 else None,
                frequency_penalty=0.3 if number % 4 == 1 else 0.0,
                seed=number,
            ),
            stopping=Stopping(max_tokens=20),
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def alone(model: LlamaModel) -> list[list[int]]:
    """Each generation by itself, from an empty pool, its prompt in one chunk."""
    return [harness(model).outputs([one])[0] for one in generations()]


def test_neighbours_change_nothing(model: LlamaModel, alone: list[list[int]]) -> None:
    assert harness(model).outputs(generations()) == alone


@pytest.mark.parametrize("budget", [17])
def test_chunk_size_changes_nothing(model: LlamaModel, alone: list[list[int]], budget: int) -> None:
    small = Limits(max_batch_size=16, token_budget=budget)
    assert harness(model, limits=small).outputs(generations()) == alone


def test_preemption_changes_nothing(model: LlamaModel, alone: list[list[int]]) -> None:
    tight = harness(model, blocks=8)
    assert tight.outputs(generations()) == alone
    assert preemptions(tight) > 0


def test_cache_hits_change_nothing(model: LlamaModel, alone: list[list[int]]) -> None:
    subject = harness(model)
    assert subject.outputs(generations()) == alone
    assert subject.outputs(generations()) == alone
    assert all(end.usage.cached_tokens >= 32 for end in ends(subject)[6:])


@pytest.mark.parametrize("delivered", [1, 13])
def test_continuing_elsewhere_changes_nothing(
    model: LlamaModel, alone: list[list[int]], delivered: int
) -> None:
    for one, whole in zip(generations(2), alone, strict=False):
        subject = harness(model)
        sequence = subject.admission.admit(continued(one, whole[:delivered]))
        subject.loop.add(sequence)
        subject.run()
        assert sequence.output_ids == whole


def continued(generation: Generation, delivered: Sequence[int]) -> Generation:
    return Generation(
        request_id=generation.request_id,
        prompt_ids=generation.prompt_ids,
        generated_ids=delivered,
        sampling=generation.sampling,
        stopping=generation.stopping,
    )


def ends(subject: Harness) -> list[Finished]:
    return [
        event
        for events in subject.events.values()
        for event in events
        if isinstance(event, Finished)
    ]


def preemptions(subject: Harness) -> int:
    return sum(end.timeline.preemptions for end in ends(subject))
