"""Rows of a step lie where their chunks say."""

from __future__ import annotations

import numpy as np

from services.engine.model.batch import Chunk
from services.engine.model.layout import Layout

LAYOUT = Layout.of(
    [
        Chunk([5], 20, [7, 3, 9], wants_logits=True),
        Chunk([1, 2, 3], 14, [4, 6], wants_logits=False),
        Chunk([8, 9], 0, [2], wants_logits=True),
    ],
    block_size=16,
)


def test_rows_follow_chunks_in_order() -> None:
    assert LAYOUT.token_ids.tolist() == [5, 1, 2, 3, 8, 9]
    assert LAYOUT.positions().tolist() == [20, 14, 15, 16, 0, 1]


def test_logits_are_wanted_of_last_rows() -> None:
    assert LAYOUT.wanting == (0, 5)


def test_blocks_beyond_the_last_position_are_left_out() -> None:
    assert [list(span.block_ids) for span in LAYOUT.spans] == [[7, 3], [4, 6], [2]]


def test_each_row_knows_where_its_blocks_begin() -> None:
    places, tables = LAYOUT.places()
    assert tables.tolist() == [7, 3, 4, 6, 2]
    assert places.tolist() == [[20, 0], [14, 2], [15, 2], [16, 2], [0, 4], [1, 4]]


def test_tiles_do_not_cross_sequences() -> None:
    np.testing.assert_array_equal(LAYOUT.tiles(2), [[0, 1], [1, 2], [3, 1], [4, 2]])
