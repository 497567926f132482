"""Supplies that have what another engine computed, and some that go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from services.engine.kv.figures import TierFigures
from services.engine.kv.supply import Given, Wanted
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
        at_once: blocks that it gives together.
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
    at_once: int = 1
    figures: TierFigures = field(default_factory=TierFigures)
    asked: list[Wanted] = field(default_factory=list)
    closed: int = 0

    def can_supply(self, wanted: Wanted) -> bool:
        return any(address in self.blocks for address in wanted.addresses)

    async def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        self.asked.append(wanted)
        given: list[memoryview] = []
        try:
            for index, address in enumerate(wanted.addresses):
                if index >= self.holds:
                    await self.gate.wait()
                if address not in self.blocks or index == self.most:
                    if given:
                        yield given
                    self.figures.miss(self.miss, len(wanted.addresses) - index)
                    yield self.miss
                    return
                self.figures.hit(1, len(self.blocks[address]))
                given.append(self.spoil(self.blocks[address]))
                if len(given) == self.at_once:
                    yield given
                    given = []
            if given:
                yield given
        finally:
            self.closed += 1
