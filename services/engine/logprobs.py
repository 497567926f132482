"""Log-probabilities of drawn tokens and of the most likely ones, by the model's own logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from services.engine import sequence as state
from services.shared.stream.events import Logprobs


def model_logprobs(
    sequences: Sequence[state.Sequence], logits: torch.Tensor
) -> dict[int, torch.Tensor]:
    """Log-softmax of the rows whose sequences ask for it: row number to [vocabulary].

    Taken before penalties and temperature change the logits.
    """
    return {
        row: torch.log_softmax(logits[row], dim=-1)
        for row, sequence in enumerate(sequences)
        if sequence.generation.output.logprobs is not None
    }


def told(
    row: int, sequence: state.Sequence, token_id: int, known: Mapping[int, torch.Tensor]
) -> Logprobs | None:
    """What is told of one drawn token; None if nothing was asked for."""
    wanted = sequence.generation.output.logprobs
    if wanted is None:
        return None
    values, token_ids = known[row].topk(wanted)
    return Logprobs(
        chosen=[float(known[row][token_id])],
        top_token_ids=token_ids.tolist(),
        top_logprobs=values.tolist(),
    )
