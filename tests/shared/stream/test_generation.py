"""What cannot be built: each bound with its field, limit and value."""

from __future__ import annotations

from math import nan

import pytest
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.shared.errors import InvalidRequest
from services.shared.stream.generation_wire import generation_from

BIAS = types.LogitBias(token_id=1, bias=101)


@pytest.mark.parametrize(
    ("part", "field", "told"),
    [
        ({"sampling": types.Sampling(temperature=3)}, "sampling.temperature", "0 to 2, got 3.0"),
        ({"sampling": types.Sampling(temperature=nan)}, "sampling.temperature", "got nan"),
        ({"sampling": types.Sampling(top_p=0)}, "sampling.top_p", "above 0 and at most 1"),
        ({"sampling": types.Sampling(top_k=0)}, "sampling.top_k", "got 0"),
        ({"sampling": types.Sampling(min_p=-1)}, "sampling.min_p", "got -1.0"),
        (
            {"sampling": types.Sampling(presence_penalty=-3)},
            "sampling.presence_penalty",
            "-2 to 2, got -3.0",
        ),
        (
            {"sampling": types.Sampling(frequency_penalty=nan)},
            "sampling.frequency_penalty",
            "got nan",
        ),
        (
            {"sampling": types.Sampling(repetition_penalty=0)},
            "sampling.repetition_penalty",
            "got 0.0",
        ),
        ({"sampling": types.Sampling(logit_bias=[BIAS])}, "sampling.logit_bias[0].bias", "101"),
        (
            {"sampling": types.Sampling(logit_bias=[types.LogitBias()] * 1025)},
            "sampling.logit_bias",
            "at most 1024 entries, got 1025",
        ),
        ({"stopping": types.Stopping(max_tokens=2**31)}, "stopping.max_tokens", str(2**31)),
        (
            {"stopping": types.Stopping(max_tokens=1, min_tokens=2)},
            "stopping.min_tokens",
            "<= max_tokens 1, got 2",
        ),
        (
            {"stopping": types.Stopping(stop_token_ids=[1] * 1025)},
            "stopping.stop_token_ids",
            "got 1025",
        ),
        ({"output": types.Output(logprobs=21)}, "output.logprobs", "0 to 20, got 21"),
        ({"output": types.Output(prompt_logprobs=21)}, "output.prompt_logprobs", "got 21"),
        (
            {"quality_of_service": types.QualityOfService(timeout_ms=0)},
            "quality_of_service.timeout_ms",
            "got 0",
        ),
        (
            {"quality_of_service": types.QualityOfService(weight=0)},
            "quality_of_service.weight",
            "0.001 to 1000.0, got 0",
        ),
        ({"cache": types.CacheControl(salt=bytes(65))}, "cache.salt", "at most 64"),
        ({"request_id": "r" * 129}, "request_id", "at most 128"),
        ({"prompt_ids": []}, "prompt_ids", "must not be empty"),
        (
            {"generated_ids": [1, 2], "stopping": types.Stopping(max_tokens=1)},
            "generated_ids",
            "at most max_tokens 1 tokens, got 2",
        ),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_name(
    part: dict[str, object], field: str, told: str
) -> None:
    request = pb.GenerateRequest(**({"prompt_ids": [1]} | part))  # type: ignore[arg-type]  # by name
    with pytest.raises(InvalidRequest) as caught:
        generation_from(request)
    assert caught.value.field == field
    assert told in caught.value.message


def test_unset_is_not_zero() -> None:
    generation = generation_from(pb.GenerateRequest(prompt_ids=[1]))
    assert generation.sampling.temperature == 1.0
    assert generation.sampling.repetition_penalty == 1.0
    assert generation.sampling.seed is None
    assert generation.stopping.max_tokens is None
    request = pb.GenerateRequest(prompt_ids=[1], sampling=types.Sampling(temperature=0, seed=0))
    request.stopping.max_tokens = 0
    generation = generation_from(request)
    assert generation.sampling.temperature == 0
    assert generation.sampling.seed == 0
    assert generation.stopping.max_tokens == 0
