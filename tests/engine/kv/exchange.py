"""Engines that take blocks from one lender, each over a connection that goes wrong."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field

from services.engine.blocks import BlockPool, OutOfBlocks
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.supply import Wanted
from services.shared.stream.events import CacheMiss
from tests.engine.kv.borrower import Borrower
from tests.engine.kv.lender import Lender
from tests.engine.kv.plain_memory import PlainMemory
from tests.engine.kv.singly import singly
from tests.faults.proxy import Proxy

BLOCK_BYTES = 2**16
RULES = PeerSettings(patience_s=0.3, arrival_s=0)
CHAINS, LENGTH = 6, 40


def address(chain: int, at: int) -> bytes:
    return bytes([chain, at]) * 8


def content(of: bytes) -> bytes:
    """What the block at an address holds, in every engine."""
    return random.Random(of).randbytes(BLOCK_BYTES)  # noqa: S311  # it repeats


CONTENT = {
    address(chain, at): content(address(chain, at))
    for chain in range(CHAINS)
    for at in range(LENGTH)
}


@dataclass(kw_only=True, slots=True)
class Taker:
    """An engine's pool that is filled from the lender.

    Attributes:
        causes: of each fetch, by what was done to it; None where all came.
    """

    lender: Lender
    proxy: Proxy
    draw: random.Random
    pool: BlockPool = field(default_factory=lambda: BlockPool(48, 16))
    memory: PlainMemory = field(default_factory=lambda: PlainMemory(48, BLOCK_BYTES))
    causes: Counter[tuple[str, CacheMiss | None]] = field(default_factory=Counter)
    taken: int = 0

    async def publish(self) -> None:
        """The lender has computed the beginning of some chain, as far as it has room."""
        chain = self.draw.randrange(CHAINS)
        wanted = [address(chain, at) for at in range(self.draw.randint(1, LENGTH))]

        def publish() -> None:
            pool = self.lender.pool
            known = pool.match(wanted)
            pool.lease(known)
            try:
                blanks = pool.lease_blank(len(wanted) - len(known))
            except OutOfBlocks:
                blanks = []
            for block, of in zip(blanks, wanted[len(known) :], strict=False):
                self.lender.memory.write(block, CONTENT[of])
                pool.publish(block, of)
            pool.end_lease(known + blanks)

        await self.lender.ask(publish)

    async def take(self, borrower: Borrower, fault: str) -> None:
        """Fetches what its pool lacks of some chain, and uses what comes."""
        chain = self.draw.randrange(CHAINS)
        addresses = [address(chain, at) for at in range(self.draw.randint(1, LENGTH))]
        found = self.pool.match(addresses)
        missing = addresses[len(found) :]
        self.pool.lease(found)
        blanks = self.pool.lease_blank(min(len(missing), self.pool.available))
        try:
            if blanks:
                await self._fill(borrower, fault, missing[: len(blanks)], blanks)
        finally:
            self.pool.end_lease(found + blanks)
            self.pool.audit()

    async def _fill(
        self, borrower: Borrower, fault: str, addresses: list[bytes], blanks: list[int]
    ) -> None:
        strikes_at = self.draw.randrange(len(addresses))
        came, cause = 0, None
        if strikes_at == 0:
            self._strike(borrower, fault)
        wanted = Wanted(addresses=addresses, peer=self.proxy.address)
        async with aclosing(singly(borrower.supply.supply(wanted))) as given:
            async for each in given:
                if isinstance(each, CacheMiss):
                    cause = each
                    break
                assert each == CONTENT[addresses[came]], "wrong bytes are used"
                self.memory.write(blanks[came], each)
                self.pool.publish(blanks[came], addresses[came])
                came += 1
                self.taken += 1
                if came == strikes_at:
                    self._strike(borrower, fault)
                    await asyncio.sleep(0)
        assert (cause is None) is (came == len(addresses))
        self.causes[fault, cause] += 1

    def _strike(self, borrower: Borrower, fault: str) -> None:
        match fault:
            case "flip":
                self.proxy.flip(self.draw.randint(1000, 200_000))
            case "truncate":
                self.proxy.truncate(self.draw.randint(1, 300_000))
            case "delay":
                self.proxy.delay(0.005)
            case "cut" | "hold" | "refuse":
                getattr(self.proxy, fault)()
            case "off":
                borrower.switch.set(enabled=False)
            case "evict":
                self.lender.loop.command(self._evict)

    def _evict(self) -> None:
        self.lender.pool.flush()
