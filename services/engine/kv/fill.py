"""One sequence on its way into the step loop, and the blocks that come for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence as Row
from dataclasses import dataclass, field

from services.engine.kv.tier import Tier
from services.engine.sequence import Sequence


@dataclass(slots=True, eq=False)
class Fill:
    """What is leased is changed by the step loop's thread, the rest by the event loop's.

    Args:
        addresses: of all blocks that the sequence could find.
        began_ns: on the monotonic clock.
        cancelled: the sequence is not wanted any more.
        entered: the step loop has the sequence.
        found, blanks: leased blocks of the chain: those with content, then those to be filled,
            which become more while the fill goes on.
        tiers: where the blanks' contents came from, of those that are filled.
    """

    sequence: Sequence
    addresses: list[bytes]
    began_ns: int = field(default_factory=time.monotonic_ns)
    cancelled: bool = False
    entered: bool = False
    found: list[int] = field(default_factory=list)
    blanks: list[int] = field(default_factory=list)
    tiers: list[Tier] = field(default_factory=list)
    _over: bool = False
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def missing(self) -> list[bytes]:
        """Addresses of what was not found; the first are those of the blanks."""
        return self.addresses[len(self.found) :]

    def landed(self, tier: Tier, count: int) -> None:
        """The next blanks are filled, so many of them."""
        self.tiers += [tier] * count
        self._move()

    def end(self) -> None:
        """Nothing more comes."""
        self._over = True
        self._move()

    async def shared(self, addresses: Row[bytes]) -> None:
        """Returns when those of its blocks have come that this chain has too, or no more will."""
        first = len(self.found)
        common = 0
        for ours, theirs in zip(self.missing, addresses[first:], strict=False):
            if ours != theirs:
                break
            common += 1
        while len(self.tiers) < common and not self._over:
            await self._moved.wait()

    def _move(self) -> None:
        """Wakes those who wait now."""
        self._moved.set()
        self._moved.clear()
