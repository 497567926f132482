"""Drawing tokens: distributions, filters, penalties, and independence from neighbours."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from services.engine.admission import Admission
from services.engine.logprobs import model_logprobs, told
from services.engine.sampler import Sampler
from services.engine.sequence import Sequence
from services.engine.stopping import Stopper
from services.shared.stream.generation import Generation, Output, Sampling, Stopping
from tests.engine.harness import MODEL, TIMEOUT_MS

ADMISSION = Admission(MODEL, TIMEOUT_MS)
SAMPLER = Sampler(Stopper(frozenset({2}), 512))
LOGITS = torch.log(torch.tensor([0.5, 0.25, 0.15, 0.07, 0.03]))


def sequence(output: tuple[int, ...] = (), stopping: Any = None, **sampling: Any) -> Sequence:
    return ADMISSION.admit(
        Generation(
            request_id="r",
            prompt_ids=[4],
            generated_ids=output,
            sampling=Sampling(**sampling),
            stopping=stopping or Stopping(),
        )
    )


def draws(count: int, **sampling: Any) -> Counter[int]:
    """Tokens drawn by many seeds from LOGITS."""
    sequences = [sequence(seed=seed, **sampling) for seed in range(count)]
    return Counter(SAMPLER.draw(sequences, LOGITS.repeat(count, 1)))


def test_temperature_zero_takes_the_best() -> None:
    assert draws(10, temperature=0.0) == {0: 10}


def test_draws_follow_the_distribution() -> None:
    seen = draws(20_000)
    expected = LOGITS.exp().numpy()
    shares = np.array([seen[token] / 20_000 for token in range(5)])
    assert np.abs(shares - expected).max() < 0.015


def test_temperature_sharpens_and_flattens() -> None:
    sharp = torch.softmax(LOGITS / 0.5, -1)
    seen = draws(20_000, temperature=0.5)
    assert abs(seen[0] / 20_000 - float(sharp[0])) < 0.015


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.49}, {0}),
        ({"top_p": 0.6}, {0, 1}),
        ({"top_p": 1.0}, {0, 1, 2, 3, 4}),
        ({"min_p": 0.29}, {0, 1, 2}),
        ({"top_k": 3, "top_p": 0.54}, {0}),
        ({"top_p": 1e-6}, {0}),
        ({"min_p": 1.0}, {0}),
    ],
)
def test_filters_leave_the_right_tokens(sampling: dict[str, Any], allowed: set[int]) -> None:
    assert set(draws(3000, **sampling)) == allowed


def test_negligible_tokens_change_nothing() -> None:
    tail = torch.cat([LOGITS, torch.full((995,), -40.0)])
    sequences = [sequence(seed=seed) for seed in range(200)]
    assert SAMPLER.draw(sequences, tail.repeat(200, 1)) == SAMPLER.draw(
        sequences, LOGITS.repeat(200, 1)
    )


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    torch.manual_seed(0)
    logits = torch.randn(40, 1000) * 4
    kinds: list[dict[str, Any]] = [
        {},
        {"top_p": 0.9},
        {"top_k": 7},
        {"temperature": 0.0},
        {"min_p": 0.05, "temperature": 1.7},
        {"top_p": 0.5, "presence_penalty": 1.0},
    ]
    sequences = [sequence(seed=row, **kinds[row % len(kinds)]) for row in range(40)]
    together = SAMPLER.draw(sequences, logits.clone())
    alone = [
        SAMPLER.draw([one], logits[row : row + 1].clone())[0] for row, one in enumerate(sequences)
    ]
    assert together == alone


def test_the_draw_barely_moves_with_the_last_digits_of_logits() -> None:
    torch.manual_seed(0)
    logits = torch.randn(200, 1000) * 3
    sequences = [sequence(seed=seed) for seed in range(200)]
    shifted = logits + torch.randn_like(logits) * 1e-5
    assert SAMPLER.draw(sequences, logits) == SAMPLER.draw(sequences, shifted)


def test_presence_and_frequency_penalties_count_output_tokens_only() -> None:
    logits = torch.zeros(1, 1000)
    logits[0, 4] = 1.0
    SAMPLER.draw([sequence((5, 5, 6), presence_penalty=0.5, frequency_penalty=0.25)], logits)
    assert logits[0, [4, 5, 6, 7]].tolist() == [1.0, -1.0, -0.75, 0.0]


def test_repetition_penalty_counts_prompt_and_output_once() -> None:
    logits = torch.full((1, 1000), 2.0)
    logits[0, 5] = -2.0
    SAMPLER.draw([sequence((5, 5), repetition_penalty=2.0)], logits)
    assert logits[0, [4, 5, 6]].tolist() == [1.0, -4.0, 2.0]


def test_logit_bias_is_added_once_for_each_entry() -> None:
    assert set(draws(200, logit_bias=((0, -100.0), (1, -100.0), (2, 100.0)))) == {2}


def test_no_end_before_min_tokens() -> None:
    logits = torch.zeros(1, 1000)
    logits[0, 2] = 50.0
    early = sequence(stopping=Stopping(min_tokens=1, stop_token_ids=(7,)), temperature=0.0)
    edited = logits.clone()
    assert SAMPLER.draw([early], edited) != [2]
    assert edited[0, 7] == -torch.inf
    late = sequence((5,), stopping=Stopping(min_tokens=1), temperature=0.0)
    assert SAMPLER.draw([late], logits.clone()) == [2]


def test_logprobs_are_those_of_the_model_best_first() -> None:
    wanting = ADMISSION.admit(Generation(request_id="r", prompt_ids=[4], output=Output(logprobs=2)))
    plain = sequence()
    logits = LOGITS.repeat(2, 1)
    known = model_logprobs([plain, wanting], logits)
    assert told(0, plain, 1, known) is None
    logprobs = told(1, wanting, 3, known)
    assert logprobs is not None
    assert logprobs.chosen == pytest.approx([np.log(0.07)], abs=1e-5)
    assert logprobs.top_token_ids == [0, 1]
    assert logprobs.top_logprobs == pytest.approx([np.log(0.5), np.log(0.25)], abs=1e-5)
