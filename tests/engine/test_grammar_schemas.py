"""The real model at temperature 1: what it writes under a JSON schema validates."""

from __future__ import annotations

import json

import jsonschema
import pytest
import torch
from tokenizers import Tokenizer

from services.engine.blocks import BlockPool
from services.engine.model.block_bytes import BlockBytes
from services.engine.model.llama import LlamaModel
from services.engine.model_runner import ModelRunner
from services.engine.parts import BLOCK_SIZE, Parts
from services.engine.sampler import Sampler
from services.engine.scheduler import Limits
from services.engine.stopping import Stopper
from services.shared.model_folder import TOKENIZER, ModelFolder
from services.shared.stream.events import Finished, FinishReason
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.grammar_bed import END_OF_TEXT, compiler, parts, schema
from tests.engine.harness import Harness
from tests.schemas import SCHEMAS

BLOCKS = 600
PROMPT = "<|im_start|>user\nGive me an example as JSON.<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def texts(model_folder: ModelFolder) -> list[str]:
    """What the model writes for each schema, all in one batch."""
    tokenizer = Tokenizer.from_file(str(model_folder.file(TOKENIZER)))
    prompt_ids = tokenizer.encode(PROMPT).ids
    model = LlamaModel.load(model_folder, device=torch.device("cpu"))
    harness = Harness(real(model, model_folder), Limits(max_batch_size=32, token_budget=512))
    keys = [
        harness.add(
            Generation(
                request_id=f"r{number}",
                prompt_ids=prompt_ids,
                sampling=Sampling(temperature=1.0, seed=number),
                stopping=Stopping(max_tokens=150),
                constraint=schema(value),
            )
        )
        for number, value in enumerate(SCHEMAS)
    ]
    harness.run()
    for key in keys:
        end = harness.end(key)
        assert isinstance(end, Finished)
        assert end.reason in {FinishReason.CONSTRAINT_COMPLETE, FinishReason.END_OF_TEXT}
    return [tokenizer.decode(harness.ids(key)) for key in keys]


def real(model: LlamaModel, folder: ModelFolder) -> Parts:
    simulated = parts(compiler(folder))
    sampler = Sampler(Stopper(END_OF_TEXT, simulated.model.context_length))
    kv_pool = model.allocate(BLOCKS, BLOCK_SIZE)
    return Parts(
        model=simulated.model,
        pool=BlockPool(BLOCKS, BLOCK_SIZE),
        runner=ModelRunner(model, kv_pool, sampler),
        memory=BlockBytes(kv_pool),
        device="cpu",
        tokenizer_fingerprint="t",
        grammars=simulated.grammars,
    )


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_what_the_model_writes_validates(texts: list[str], number: int) -> None:
    jsonschema.validate(json.loads(texts[number]), SCHEMAS[number])
