"""Draws tokens: a pure function of seed, position and logits, vectorised over the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from services.engine import grammar_mask, logit_edits
from services.engine import sequence as state
from services.engine.drawing import Drawing, PlainDrawing, TokenIds
from services.engine.filters import filters, keep
from services.engine.noise import stream_keys
from services.engine.stopping import Stopper

# Colder than this only the best token is left, and fp32 would divide by zero.
COLDEST = 1e-6


class Sampler:
    """Chooses the next token of each sequence.

    Args:
        stopper: tells which tokens may not be drawn yet.
        drawing: the arithmetic.
    """

    def __init__(self, stopper: Stopper, drawing: Drawing | None = None) -> None:
        self._stopper = stopper
        self._drawing = drawing or PlainDrawing()

    def draw(self, sequences: Sequence[state.Sequence], logits: torch.Tensor) -> list[int]:
        """One token ID for each row.

        Args:
            sequences: n sequences.
            logits: [n, vocabulary] in fp32, changed in place by grammars, biases and penalties.
        """
        grammar_mask.apply(sequences, logits)
        logit_edits.apply(sequences, logits, self._stopper)
        drawn = self._drawing.best(logits)
        rows = [
            row
            for row, sequence in enumerate(sequences)
            if sequence.generation.sampling.temperature > 0
        ]
        if len(rows) == len(sequences):
            drawn = self._sample(sequences, logits, drawn)
        elif rows:
            chosen = [sequences[row] for row in rows]
            drawn[rows] = self._sample(chosen, logits[rows], drawn[rows])
        token_ids: list[int] = drawn.tolist()
        return token_ids

    def _sample(
        self, sequences: Sequence[state.Sequence], logits: torch.Tensor, best: TokenIds
    ) -> TokenIds:
        samplings = [sequence.generation.sampling for sequence in sequences]
        temperatures = [max(sampling.temperature, COLDEST) for sampling in samplings]
        weights = self._drawing.weights(logits, best, np.array(temperatures, dtype=np.float32))
        for row, sampling in enumerate(samplings):
            if filters(sampling):
                keep(weights[row], sampling)
        seeds = np.array([sequence.seed for sequence in sequences], dtype=np.uint64)
        positions = np.array([sequence.position for sequence in sequences], dtype=np.uint64)
        return self._drawing.race(weights, stream_keys(seeds, positions), best)
