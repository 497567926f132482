"""Parts of an engine that computes the real model."""

from __future__ import annotations

from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.model.block_bytes import BlockBytes
from services.engine.model.llama import LlamaModel
from services.engine.model_runner import ModelRunner
from services.engine.parts import BLOCK_SIZE, Parts
from services.engine.sampler import Sampler
from services.engine.stopping import Stopper

END_OF_TEXT = frozenset({2})


def real_parts(model: LlamaModel, blocks: int = 200) -> Parts:
    config = model.config
    context_length = min(config.context_length, blocks * BLOCK_SIZE)
    served = ServedModel(
        name="smollm2",
        fingerprint="f",
        vocabulary_size=config.vocabulary_size,
        context_length=context_length,
        end_of_text_ids=END_OF_TEXT,
        kv_layout_id="l",
    )
    sampler = Sampler(Stopper(END_OF_TEXT, context_length))
    kv_pool = model.allocate(blocks, BLOCK_SIZE)
    return Parts(
        model=served,
        pool=BlockPool(blocks, BLOCK_SIZE),
        runner=ModelRunner(model, kv_pool, sampler),
        memory=BlockBytes(kv_pool),
        device="cpu",
        tokenizer_fingerprint="t",
    )
