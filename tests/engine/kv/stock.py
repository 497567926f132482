"""Supplies that have what another engine computed, and some that go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from services.engine.kv.figures import TierFigures
from services.engine.kv.supply import Wanted
from services.engine.kv.tier import Tier
from services.engine.parts import Parts
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import Generation
from tests.engine.harness import Harness

Blocks = Mapping[bytes, memoryview]


def computed_blocks(parts: Parts, generations: Sequence[Generation]) -> Blocks:
    """What the blocks of these hold, by address, computed by an engine of these parts."""
    Harness(parts).outputs(generations)
    addresses = parts.pool.watch()
    return {
        address: parts.memory.read(block)
        for address in addresses
        for block in parts.pool.match([address])
    }


def _opened() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(eq=False)
class Stock:
    """A supply of blocks that it has all the time.

    Args:
        size: bytes of a block.
        most: blocks that it gives to a prompt.
        holds: blocks that it gives before it waits for `gate`.
        spoil: makes of a block what is given.

    Attributes:
        asked: what for, each time.
        closed: how often it was left before or after its end.
    """

    blocks: Blocks
    tier: Tier = Tier.SERVICE
    most: int = 1000
    miss: CacheMiss = CacheMiss.ABSENT
    holds: int = 0
    gate: asyncio.Event = field(default_factory=_opened)
    spoil: Callable[[memoryview], memoryview] = memoryview
    figures: TierFigures = field(default_factory=TierFigures)
    asked: list[Wanted] = field(default_factory=list)
    closed: int = 0

    def can_supply(self, wanted: Wanted) -> bool:
        return any(address in self.blocks for address in wanted.addresses)

    async def supply(self, wanted: Wanted) -> AsyncGenerator[memoryview | CacheMiss, None]:
        self.asked.append(wanted)
        try:
            for index, address in enumerate(wanted.addresses):
                if index >= self.holds:
                    await self.gate.wait()
                if address not in self.blocks or index == self.most:
                    self.figures.miss(self.miss, len(wanted.addresses) - index)
                    yield self.miss
                    return
                self.figures.hit(1, len(self.blocks[address]))
                yield self.spoil(self.blocks[address])
        finally:
            self.closed += 1
