"""The arithmetic of a draw: the best token, weights, and an exponential race.

In the race a token of weight w arrives after -ln(u) / w, and the first is drawn: each with the
probability w / sum of w. With w = exp(score) this is the Gumbel-max trick without its second
logarithm.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from services.engine.noise import UInt64s, uniform

Floats = NDArray[np.float32]
TokenIds = NDArray[np.int64]


class Drawing(Protocol):
    """Works on n rows of a vocabulary; no row depends on another."""

    def best(self, logits: torch.Tensor) -> TokenIds:
        """The most likely token of each row of logits [n, vocabulary], fp32; [n]."""

    def weights(self, logits: torch.Tensor, best: TokenIds, temperatures: Floats) -> Floats:
        """exp((logit - best logit) / temperature), [n, vocabulary]; the best token's is 1."""

    def race(self, weights: Floats, keys: UInt64s, best: TokenIds) -> TokenIds:
        """The drawn token of each row, by the keys [n] of `noise.stream_keys`; [n]."""


class PlainDrawing:
    """By torch and numpy alone; serves any device."""

    def best(self, logits: torch.Tensor) -> TokenIds:
        best: TokenIds = logits.argmax(dim=-1).cpu().numpy()
        return best

    def weights(self, logits: torch.Tensor, best: TokenIds, temperatures: Floats) -> Floats:
        peaks = logits.gather(1, torch.from_numpy(best).to(logits.device)[:, None])
        heat = torch.from_numpy(temperatures).to(logits.device)[:, None]
        weights: Floats = ((logits - peaks) / heat).exp_().cpu().numpy()
        return weights

    def race(self, weights: Floats, keys: UInt64s, best: TokenIds) -> TokenIds:
        del best  # a start for those who skip what cannot win
        token_ids = np.arange(weights.shape[1], dtype=np.uint64)
        with np.errstate(divide="ignore"):
            arrivals = -np.log(uniform(keys[:, None], token_ids)) / weights
        drawn: TokenIds = arrivals.argmin(axis=1)
        return drawn
