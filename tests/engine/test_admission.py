"""What an engine refuses, by field, limit and value."""

from __future__ import annotations

from typing import Any

import pytest

from services.engine.admission import Admission
from services.shared.errors import ContextLengthExceeded, ServiceError, Unsupported
from services.shared.stream.generation import (
    Generation,
    Output,
    QualityOfService,
    Sampling,
    Stopping,
)
from tests.engine.harness import MODEL, TIMEOUT_MS

ADMISSION = Admission(MODEL, TIMEOUT_MS)


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"prompt_ids": [1, 2, 1000]}, "prompt_ids[2]", "1000"),
        ({"prompt_ids": [2**32 - 1]}, "prompt_ids[0]", "4294967295"),
        ({"generated_ids": [5000]}, "generated_ids[0]", "5000"),
        ({"stopping": Stopping(stop_token_ids=(1, 70000))}, "stopping.stop_token_ids[1]", "70000"),
        ({"sampling": Sampling(logit_bias=((1000, 1.0),))}, "sampling.logit_bias[0]", "1000"),
        ({"prompt_ids": [1] * 512}, "prompt_ids", "512"),
        ({"prompt_ids": [1] * 500, "generated_ids": [1] * 13}, "generated_ids", "513"),
        ({"model": "other"}, "model", "other"),
        ({"output": Output(prompt_logprobs=1)}, "output.prompt_logprobs", "prompt_logprobs"),
    ],
)
def test_refusals_name_field_and_value(changes: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        ADMISSION.admit(Generation(**({"request_id": "r", "prompt_ids": [1]} | changes)))
    assert refusal.value.field == field
    assert told in refusal.value.message


def test_a_long_prompt_tells_its_length_and_the_context() -> None:
    with pytest.raises(ContextLengthExceeded) as refusal:
        ADMISSION.admit(Generation(request_id="r", prompt_ids=[1] * 600))
    assert (refusal.value.prompt_tokens, refusal.value.context_length) == (600, 512)


def test_what_is_not_built_is_refused_and_not_ignored() -> None:
    with pytest.raises(Unsupported):
        ADMISSION.admit(
            Generation(request_id="r", prompt_ids=[1], output=Output(prompt_logprobs=1))
        )


def test_max_tokens_beyond_the_room_is_a_cap() -> None:
    generation = Generation(
        request_id="r", prompt_ids=[1] * 500, stopping=Stopping(max_tokens=32_000)
    )
    assert ADMISSION.admit(generation).limit == 512


def test_a_request_without_a_seed_gets_one_of_its_own() -> None:
    generation = Generation(request_id="r", prompt_ids=[1])
    assert ADMISSION.admit(generation).seed != ADMISSION.admit(generation).seed


@pytest.mark.parametrize(("asked", "given"), [(None, 1000), (10, 10), (5000, 1000)])
def test_a_deadline_is_the_callers_within_the_engines(asked: int | None, given: int) -> None:
    quality = QualityOfService(timeout_ms=asked)
    generation = Generation(request_id="r", prompt_ids=[1], quality_of_service=quality)
    sequence = Admission(MODEL, 1000).admit(generation)
    assert sequence.deadline_ns - sequence.arrived_ns == given * 1_000_000
