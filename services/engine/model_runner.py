"""The runner of a real model: forward pass, then one draw for each row of logits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from services.engine.logprobs import model_logprobs, told
from services.engine.model.batch import Chunk
from services.engine.model.kv_pool import KvPool
from services.engine.model.llama import LlamaModel
from services.engine.runner import Draw
from services.engine.sampler import Sampler
from services.engine.scheduler import Work


class ModelRunner:
    """Computes works on a model and the tensors of its KV blocks."""

    def __init__(self, model: LlamaModel, pool: KvPool, sampler: Sampler) -> None:
        self.model = model
        self._pool = pool
        self._sampler = sampler
        self.drawn_ns = 0

    def warm_up(self) -> None:
        self.model.warm_up(self._pool)

    @torch.inference_mode()
    def run(self, works: Sequence[Work]) -> list[Draw]:
        logits = self.model.forward([_chunk(work) for work in works], self._pool)
        drawing = [work.sequence for work in works if work.draws]
        if not drawing:
            return []
        began_ns = time.monotonic_ns()
        known = model_logprobs(drawing, logits)
        drawn = self._sampler.draw(drawing, logits)
        draws = [
            Draw(token_id, told(row, sequence, token_id, known))
            for row, (sequence, token_id) in enumerate(zip(drawing, drawn, strict=True))
        ]
        self.drawn_ns += time.monotonic_ns() - began_ns
        return draws


def _chunk(work: Work) -> Chunk:
    sequence = work.sequence
    start = sequence.computed
    return Chunk(
        token_ids=sequence.tokens[start : start + work.count],
        start=start,
        block_ids=sequence.blocks,
        wants_logits=work.draws,
    )
