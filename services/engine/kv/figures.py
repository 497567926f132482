"""What each tier did, counted by whichever thread did it."""

from __future__ import annotations

from collections import Counter
from threading import Lock

from services.engine.kv.tier import Skip, Tier
from services.shared.histogram import Histogram
from services.shared.stream.events import CacheMiss

READ_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of reading times."""


class TierFigures:
    """Counts since the start.

    Attributes:
        hit_blocks: found, of those that a prompt needed and the tiers before had not got.
        misses: those that were not found, by cause.
        read_bytes: of blocks found.
        reads: seconds that reads of one prompt's blocks took.
        written_blocks, written_bytes: what was written.
        skips: blocks that were not written, by cause.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.hit_blocks = 0
        self.misses: Counter[CacheMiss] = Counter()
        self.read_bytes = 0
        self.reads = Histogram(READ_BUCKETS_S)
        self.written_blocks = 0
        self.written_bytes = 0
        self.skips: Counter[Skip] = Counter()

    def hit(self, blocks: int, size: int) -> None:
        """Args: size: their bytes, all together."""
        with self._lock:
            self.hit_blocks += blocks
            self.read_bytes += size

    def miss(self, cause: CacheMiss, blocks: int) -> None:
        with self._lock:
            self.misses[cause] += blocks

    def read(self, seconds: float) -> None:
        """One prompt's blocks were read, or as many as came."""
        with self._lock:
            self.reads.note(seconds)

    def wrote(self, blocks: int, size: int) -> None:
        with self._lock:
            self.written_blocks += blocks
            self.written_bytes += size

    def skip(self, cause: Skip, blocks: int = 1) -> None:
        if blocks:
            with self._lock:
                self.skips[cause] += blocks


Figures = dict[Tier, TierFigures]


def new_figures() -> Figures:
    return {tier: TierFigures() for tier in Tier}
