"""One who fetches from peers, with counters that must fit what came."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.peer_supply import PeerSupply
from services.engine.kv.staging import Staging
from services.engine.kv.supply import Wanted
from services.engine.kv.switch import CacheSwitch
from services.shared.stream.events import CacheMiss
from services.shared.tls.way import CLEAR, Way
from tests.engine.kv.lender import LAYOUT
from tests.engine.kv.singly import singly

RULES = PeerSettings(patience_s=20, arrival_s=0)


@dataclass(kw_only=True, slots=True)
class Borrower:
    supply: PeerSupply
    switch: CacheSwitch
    figures: TierFigures = field(default_factory=TierFigures)

    def given(
        self, addresses: Sequence[bytes], peer: str, *, follows: bool = True
    ) -> AsyncGenerator[memoryview | CacheMiss, None]:
        wanted = Wanted(addresses=addresses, peer=peer, follows=follows)
        assert self.supply.can_supply(wanted)
        return singly(self.supply.supply(wanted))

    async def fetched(
        self, addresses: Sequence[bytes], peer: str, *, follows: bool = True
    ) -> tuple[list[bytes], CacheMiss | None]:
        """The blocks that came, and why the next did not; both are counted."""
        blocks: list[bytes] = []
        cause: CacheMiss | None = None
        hits, misses = self.figures.hit_blocks, self.figures.misses.copy()
        async with aclosing(self.given(addresses, peer, follows=follows)) as given:
            async for each in given:
                assert cause is None, "the cause is the last"
                if isinstance(each, CacheMiss):
                    cause = each
                else:
                    blocks.append(bytes(each))
        assert self.figures.hit_blocks - hits == len(blocks)
        missed = self.figures.misses - misses
        assert missed == ({} if cause is None else {cause: len(addresses) - len(blocks)})
        assert (cause is None) is (len(blocks) == len(addresses))
        return blocks, cause


@asynccontextmanager
async def borrowing(
    block_bytes: int,
    rules: PeerSettings = RULES,
    *,
    layout: str = LAYOUT,
    way: Way = CLEAR,
    staging: Staging | None = None,
) -> AsyncIterator[Borrower]:
    switch, figures = CacheSwitch(), TierFigures()
    supply = PeerSupply(layout, block_bytes, switch, figures, rules, way=way, staging=staging)
    try:
        yield Borrower(supply=supply, switch=switch, figures=figures)
    finally:
        await supply.close()
        assert not supply._streams
