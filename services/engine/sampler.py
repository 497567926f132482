"""Draws tokens: a pure function of seed, position and logits, vectorised over the batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from services.engine import grammar_mask, logit_edits
from services.engine import sequence as state
from services.engine.noise import gumbel
from services.engine.stopping import Stopper

# A token this far below the best, in nats, is left out of the draw: few remain to be hashed.
NEGLIGIBLE = 24.0

Floats = NDArray[np.float64]


class Sampler:
    """Chooses the next token of each sequence; `stopper` tells which may not be drawn yet."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper

    def draw(self, sequences: Sequence[state.Sequence], logits: torch.Tensor) -> list[int]:
        """One token ID for each row.

        Args:
            sequences: n sequences.
            logits: [n, vocabulary] in fp32, changed in place by grammars, biases and penalties.
        """
        grammar_mask.apply(sequences, logits)
        logit_edits.apply(sequences, logits, self._stopper)
        best = logits.argmax(dim=-1)
        drawn: list[int] = best.tolist()
        rows = [
            row
            for row, sequence in enumerate(sequences)
            if sequence.generation.sampling.temperature > 0
        ]
        if rows:
            chosen = [sequences[row] for row in rows]
            picked = logits if len(rows) == len(sequences) else logits[rows]
            for row, token_id in zip(rows, _sample(chosen, picked), strict=True):
                drawn[row] = token_id
        return drawn


def _sample(sequences: Sequence[state.Sequence], logits: torch.Tensor) -> list[int]:
    scores, token_ids = _candidates(sequences, logits)
    if any(_filters(sequence) for sequence in sequences):
        scores, token_ids = _filtered(sequences, scores, token_ids)
    seeds = np.array([[sequence.seed] for sequence in sequences], dtype=np.uint64)
    positions = np.array([[sequence.position] for sequence in sequences], dtype=np.uint64)
    noisy = scores + gumbel(seeds, positions, token_ids.astype(np.uint64))
    winners = noisy.argmax(axis=1)
    drawn: list[int] = np.take_along_axis(token_ids, winners[:, None], axis=1)[:, 0].tolist()
    return drawn


def _candidates(
    sequences: Sequence[state.Sequence], logits: torch.Tensor
) -> tuple[Floats, NDArray[np.int64]]:
    """Scores and IDs of the tokens that can be drawn, [n, most of any row]; the rest is -inf."""
    temperatures = [sequence.generation.sampling.temperature for sequence in sequences]
    heat = torch.tensor(temperatures, dtype=logits.dtype, device=logits.device)
    top = logits.amax(dim=-1)
    rows, columns = (logits >= (top - NEGLIGIBLE * heat)[:, None]).nonzero(as_tuple=True)
    values = (logits[rows, columns] - top[rows]).cpu().numpy().astype(np.float64)
    row_numbers, token_numbers = rows.cpu().numpy(), columns.cpu().numpy()
    counts = np.bincount(row_numbers, minlength=len(sequences))
    places = np.arange(len(row_numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
    scores = np.full((len(sequences), int(counts.max())), -np.inf)
    token_ids = np.zeros(scores.shape, dtype=np.int64)
    scores[row_numbers, places] = values / np.asarray(temperatures)[row_numbers]
    token_ids[row_numbers, places] = token_numbers
    return scores, token_ids


def _filters(sequence: state.Sequence) -> bool:
    sampling = sequence.generation.sampling
    return not (sampling.top_k is sampling.top_p is sampling.min_p is None)


def _filtered(
    sequences: Sequence[state.Sequence], scores: Floats, token_ids: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int64]]:
    """Sorts each row, best first, and removes what top-k, min-p and top-p leave out.

    Each row is summed in its own order, so that a row's result does not depend on its neighbours.
    """
    samplings = [sequence.generation.sampling for sequence in sequences]
    order = np.argsort(-scores, axis=1, kind="stable")
    scores = np.take_along_axis(scores, order, axis=1)
    token_ids = np.take_along_axis(token_ids, order, axis=1)
    width = scores.shape[1]
    top_k = np.array([[sampling.top_k or width] for sampling in samplings])
    min_p = np.array([[sampling.min_p or 0.0] for sampling in samplings])
    top_p = np.array([[sampling.top_p or 1.0] for sampling in samplings])
    likelihoods = np.exp(scores)
    likelihoods[(np.arange(width) >= top_k) | (likelihoods < min_p)] = 0.0
    sums = np.cumsum(likelihoods, axis=1)
    before = sums - likelihoods
    kept = (likelihoods > 0) & ((before < top_p * sums[:, -1:]) | (top_p >= 1.0))
    return np.where(kept, scores, -np.inf), token_ids
