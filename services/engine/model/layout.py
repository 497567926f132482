"""Where each row of a step belongs: its token, its position, its sequence's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from services.engine.model.batch import Chunk


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One chunk's rows among all rows of the step, and its blocks."""

    first: int
    rows: int
    start: int
    block_ids: Sequence[int]

    @property
    def end(self) -> int:
        """Positions of the sequence after this chunk."""
        return self.start + self.rows

    @property
    def row_slice(self) -> slice:
        return slice(self.first, self.first + self.rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The rows of a step, chunk after chunk.

    Attributes:
        token_ids: of each row.
        spans: of each chunk.
        wanting: rows whose logits are wanted.
    """

    token_ids: NDArray[np.int64]
    spans: tuple[Span, ...]
    wanting: tuple[int, ...]

    @classmethod
    def of(cls, chunks: Sequence[Chunk], block_size: int) -> Layout:
        spans, wanting, first = [], [], 0
        for chunk in chunks:
            rows = len(chunk.token_ids)
            blocks = -(-(chunk.start + rows) // block_size)
            spans.append(
                Span(
                    first=first,
                    rows=rows,
                    start=chunk.start,
                    block_ids=chunk.block_ids[:blocks],
                )
            )
            first += rows
            if chunk.wants_logits:
                wanting.append(first - 1)
        ids = chain.from_iterable(chunk.token_ids for chunk in chunks)
        return cls(
            token_ids=np.fromiter(ids, np.int64, first),
            spans=tuple(spans),
            wanting=tuple(wanting),
        )

    def positions(self) -> NDArray[np.int64]:
        """Position of each row."""
        return np.concatenate([np.arange(span.start, span.end) for span in self.spans])

    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Of each row its position and where its sequence's blocks begin; all blocks [n]."""
        counts = [len(span.block_ids) for span in self.spans]
        begins = np.cumsum([0, *counts])
        begin = np.repeat(begins[:-1], [span.rows for span in self.spans])
        block_ids = chain.from_iterable(span.block_ids for span in self.spans)
        return (
            np.stack((self.positions(), begin), axis=1),
            np.fromiter(block_ids, np.int32, begins[-1]),
        )

    def tiles(self, size: int) -> NDArray[np.int64]:
        """First row and number of rows of each tile: `size` rows of a span, or one left over."""
        tiles = [
            (first, min(size, last - first))
            for span in self.spans
            for last in (span.first + span.rows,)
            for first in range(span.first, last, size)
        ]
        return np.array(tiles, np.int64)
