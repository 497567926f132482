"""Prints a digest of what the compiled attention computes in this process.

Use: python -m tests.engine.model.kernel_digest
"""

from __future__ import annotations

import hashlib
import sys

import numpy as np
from numpy.typing import NDArray

from services.engine.model.attention_kernel import LANES, attention_kernel, attention_scratch

GROUP, HEAD_DIM, KV_HEADS = 3, 16, 2
ROWS = 15
START = 17
"""Positions that the rows see besides their own; the last row is alone in its tile."""


def digest() -> str:
    draw = np.random.default_rng(7)

    def random(*shape: int) -> NDArray[np.float32]:
        return draw.standard_normal(shape, dtype=np.float32)

    blocks = -(-(START + ROWS) // LANES)
    out = np.empty((ROWS, KV_HEADS * GROUP * HEAD_DIM), np.float32)
    attention_kernel(GROUP, HEAD_DIM, parallel=False)(
        random(ROWS, KV_HEADS * (GROUP + 2) * HEAD_DIM),
        np.array([(START + row, 0) for row in range(ROWS)]),
        np.array([(row, min(2, ROWS - row)) for row in range(0, ROWS, 2)]),
        np.arange(blocks, dtype=np.int32),
        random(START + ROWS, HEAD_DIM),
        random(blocks, KV_HEADS, 2, HEAD_DIM * LANES),
        attention_scratch(1, GROUP, HEAD_DIM, START + ROWS),
        out,
    )
    return hashlib.sha256(out.tobytes()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest())
