"""A bug that one of eight sequences meets while the model draws is that sequence's alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch

from services.engine import grammar_mask, logit_edits, model_runner, sampler
from services.engine.model.llama import LlamaModel
from services.engine.sequence import Sequence
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.generation import Generation, Output, Sampling, Stopping
from tests.engine.harness import Harness
from tests.engine.model.tiny_folder import write_folder
from tests.engine.real_parts import real_parts

CULPRIT = 3
COUNT = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LlamaModel:
    folder = write_folder(tmp_path_factory.mktemp("tiny"))
    return LlamaModel.load(folder, device=torch.device("cpu"))


def generation(number: int) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[10 + number, *range(20, 25 + number)],
        sampling=Sampling(
            temperature=0.9, seed=number, top_p=0.8, top_k=9, min_p=0.01, presence_penalty=0.5
        ),
        output=Output(logprobs=2),
        stopping=Stopping(max_tokens=6, ignore_eos=True),
    )


def touches_the_culprit(value: Any) -> bool:
    if isinstance(value, Sequence):
        return value.generation.request_id == f"r{CULPRIT}"
    if isinstance(value, Sampling):
        return value.seed == CULPRIT
    return (
        isinstance(value, Iterable)
        and not isinstance(value, str | torch.Tensor)
        and any(touches_the_culprit(inner) for inner in value)
    )


def broken(inner: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(
            isinstance(arg, (list, Sequence, Sampling)) and touches_the_culprit(arg) for arg in args
        ):
            raise RuntimeError("a bug")
        return inner(*args, **kwargs)

    return call


STAGES: dict[str, tuple[Any, str]] = {
    "grammar": (grammar_mask, "apply"),
    "penalties": (logit_edits, "apply"),
    "filters": (sampler, "keep"),
    "log-probabilities": (model_runner, "told"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_it_fails_alone_and_the_others_draw_what_they_would_have(
    model: LlamaModel, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [generation(number) for number in range(COUNT)]
    expected = Harness(real_parts(model, blocks=40)).outputs(wanted)
    owner, name = STAGES[stage]
    monkeypatch.setattr(owner, name, broken(getattr(owner, name)))
    harness = Harness(real_parts(model, blocks=40))
    keys = [harness.add(one) for one in wanted]
    harness.run()
    end = harness.end(keys[CULPRIT])
    assert isinstance(end, Failed)
    assert (end.code, end.message) == (Code.INTERNAL, "internal error")
    others = [number for number in range(COUNT) if number != CULPRIT]
    assert [harness.ids(keys[at]) for at in others] == [expected[at] for at in others]
    pool = harness.parts.pool
    assert pool.free + pool.cached == pool.count
