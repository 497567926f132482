from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.llama_tensors import unpermuted


@given(st.integers(1, 5), st.integers(1, 8), st.integers(1, 3))
def test_unpermuted_rows_turn_as_halves_where_stored_rows_turn_as_neighbours(
    heads: int, half: int, width: int
) -> None:
    """Row i of a head turns with row half + i; stored, the two are rows 2i and 2i + 1."""
    rows = np.arange(heads * 2 * half * width, dtype=np.float16).reshape(-1, width)
    stored = np.empty_like(rows)
    for head in range(heads):
        first = head * 2 * half
        for i in range(half):
            stored[first + 2 * i] = rows[first + i]
            stored[first + 2 * i + 1] = rows[first + half + i]
    assert (unpermuted(stored, heads) == rows).all()
