"""What a step computes: a chunk of tokens for each of its sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Chunk:
    """One sequence's part of a step; it takes a row for each of its tokens.

    Attributes:
        token_ids: the tokens to compute, at least one.
        start: position of the first of them; all positions before it are in the blocks already.
        block_ids: the sequence's blocks in order, covering `start + len(token_ids)` positions.
        wants_logits: whether the step returns the logits of the last row.
    """

    token_ids: Sequence[int]
    start: int
    block_ids: Sequence[int]
    wants_logits: bool
