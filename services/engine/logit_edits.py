"""Changes to logits before a token is drawn: biases, penalties, banned tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from services.engine import sequence as state
from services.engine.stopping import Stopper


def apply(sequences: Sequence[state.Sequence], logits: torch.Tensor, stopper: Stopper) -> None:
    """Edits logits [n, vocabulary] in place, each row by its own sequence.

    Repetition penalty as in Keskar et al. 2019 (CTRL); presence and frequency penalty as in the
    OpenAI API.
    """
    for number, sequence in enumerate(sequences):
        sampling = sequence.generation.sampling
        row = logits[number]
        if sampling.repetition_penalty != 1.0:
            _penalise_repetition(row, sequence.tokens, sampling.repetition_penalty)
        if sampling.presence_penalty or sampling.frequency_penalty:
            _penalise_counts(row, sequence)
        if sampling.logit_bias:
            token_ids, biases = zip(*sampling.logit_bias, strict=True)
            row.index_add_(0, _index(row, token_ids), row.new_tensor(biases))
        banned = stopper.banned(sequence)
        if banned:
            _ban(row, sorted(banned))


def _ban(row: torch.Tensor, token_ids: Sequence[int]) -> None:
    """Leaves the row as it is if a grammar has left nothing but these tokens."""
    index = _index(row, token_ids)
    before = row[index]
    row[index] = -torch.inf
    if row.max() == -torch.inf:
        row[index] = before


def _penalise_repetition(row: torch.Tensor, token_ids: Sequence[int], penalty: float) -> None:
    seen = _index(row, token_ids).unique()
    values = row[seen]
    row[seen] = torch.where(values > 0, values / penalty, values * penalty)


def _penalise_counts(row: torch.Tensor, sequence: state.Sequence) -> None:
    counts = Counter(sequence.output_ids)
    if not counts:
        return
    sampling = sequence.generation.sampling
    penalties = [
        sampling.presence_penalty + sampling.frequency_penalty * count for count in counts.values()
    ]
    row[_index(row, list(counts))] -= row.new_tensor(penalties)


def _index(row: torch.Tensor, token_ids: Sequence[int]) -> torch.Tensor:
    return torch.tensor(token_ids, dtype=torch.long, device=row.device)
