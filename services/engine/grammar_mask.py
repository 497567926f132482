"""What grammars do not allow, taken out of a batch's logits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from services.engine import sequence as state


def apply(sequences: Sequence[state.Sequence], logits: torch.Tensor) -> None:
    """Sets logits [n, vocabulary] to -inf, in place, where a row's grammar does not allow a token.

    Raises:
        InvalidRequest: a constraint is too complex to go on with.
    """
    rows, masks = [], []
    for row, sequence in enumerate(sequences):
        if sequence.matcher is not None:
            rows.append(row)
            masks.append(sequence.matcher.allowed())
    if not rows:
        return
    packed = np.frombuffer(b"".join(masks), dtype=np.uint8).reshape(len(rows), -1)
    bits = np.unpackbits(packed, axis=1, count=logits.shape[1], bitorder="little")
    forbidden = torch.from_numpy(bits == 0).to(logits.device)
    for place, row in enumerate(rows):
        logits[row].masked_fill_(forbidden[place], -torch.inf)
