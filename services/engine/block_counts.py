"""A pool's blocks by state, as of one moment."""

from __future__ import annotations

from dataclasses import dataclass

from services.engine.blocks import BlockPool


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockCounts:
    """Each state as the pool counts it; free + owned + leased + cached == total."""

    free: int
    owned: int
    leased: int
    cached: int
    total: int

    @classmethod
    def of(cls, pool: BlockPool) -> BlockCounts:
        """For the thread that the pool belongs to."""
        return cls(
            free=pool.free,
            owned=pool.owned,
            leased=pool.leased,
            cached=pool.cached,
            total=pool.count,
        )
