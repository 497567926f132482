"""Two thousand operations between engines while connections go wrong: no wrong byte is used."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from services.engine.kv.loan_requests import Chain, Lookup, Release
from services.shared.stream.events import CacheMiss
from tests.engine.kv.borrower import borrowing
from tests.engine.kv.exchange import BLOCK_BYTES, CHAINS, CONTENT, RULES, Taker, address
from tests.engine.kv.lender import LAYOUT, Lender, lent
from tests.engine.kv.plain_memory import PlainMemory
from tests.faults.proxy import proxy_to

TAKERS = 4
OPERATIONS = 2000
SEED = 20

LOST = {CacheMiss.UNREACHABLE, CacheMiss.TIMEOUT}
"""What is told where a connection broke, or nothing came."""

CAUSES: dict[str, set[CacheMiss]] = {
    "none": set(),
    "evict": set(),
    "delay": {CacheMiss.TIMEOUT},
    "flip": {CacheMiss.CHECKSUM, CacheMiss.LAYOUT, *LOST},
    "truncate": LOST,
    "cut": LOST,
    "hold": LOST,
    "refuse": LOST,
    "off": {CacheMiss.OFF},
    "cancel": set(),
    "layout": {CacheMiss.LAYOUT},
}
"""What may be told beside `evicted`, by what was done."""

MUST = {
    ("flip", CacheMiss.CHECKSUM),
    ("truncate", CacheMiss.UNREACHABLE),
    ("cut", CacheMiss.UNREACHABLE),
    ("hold", CacheMiss.TIMEOUT),
    ("off", CacheMiss.OFF),
    ("layout", CacheMiss.LAYOUT),
    ("none", CacheMiss.EVICTED),
    ("none", None),
}
"""What must have occurred, or the test shows less than it says."""


async def lease(lender: Lender, draw: random.Random) -> None:
    """Somebody looks blocks up, and gives them back, or forgets to."""
    chain = draw.randrange(CHAINS)
    chain_of = Chain(kv_layout_id=LAYOUT, addresses=[address(chain, at) for at in range(9)])
    found = await lender.lending.lookup(Lookup(chain=chain_of, lease_ms=draw.choice([1, 10])))
    if found.loan is not None and draw.random() < 0.5:
        lender.lending.release(
            Release(lease_id=found.loan.id, incarnation=lender.lending.incarnation)
        )


async def fetch(taker: Taker) -> None:
    """One engine's fetch, with something done to it more often than not."""
    fault = taker.draw.choice([*CAUSES, *["none"] * 6])
    layout = "other" if fault == "layout" else LAYOUT
    async with borrowing(BLOCK_BYTES, RULES, layout=layout) as borrower:
        taking = asyncio.ensure_future(taker.take(borrower, fault))
        if fault == "cancel":
            await asyncio.wait([taking], timeout=taker.draw.random() / 100)
            taking.cancel()
        await asyncio.wait([taking])
        taker.proxy.restore()
        if not taking.cancelled():
            taking.result()


async def work(taker: Taker, operations: int) -> None:
    for _ in range(operations):
        kind = taker.draw.random()
        if kind < 0.2:
            await taker.publish()
        elif kind < 0.25:
            await lease(taker.lender, taker.draw)
        else:
            await fetch(taker)


async def test_two_thousand_operations_use_no_wrong_byte_and_lose_no_block() -> None:
    takers: list[Taker] = []

    async def take(lender: Lender, number: int) -> None:
        with proxy_to(lender.address) as proxy:
            draw = random.Random(SEED + number)  # noqa: S311  # it repeats
            takers.append(Taker(lender=lender, proxy=proxy, draw=draw))
            await work(takers[-1], OPERATIONS // TAKERS)

    async with lent(PlainMemory(128, BLOCK_BYTES), blocks=128) as lender:
        await asyncio.gather(*(take(lender, number) for number in range(TAKERS)))
    causes: Counter[tuple[str, CacheMiss | None]] = Counter()
    for taker in takers:
        causes += taker.causes
    other = [each for each in causes if each[1] not in {None, CacheMiss.EVICTED, *CAUSES[each[0]]}]
    assert {cause for _, cause in other} <= LOST, "a busy machine is late, and nothing else"
    assert sum(causes[each] for each in other) < causes.total() / 50, other
    assert set(causes) >= MUST
    assert sum(taker.taken for taker in takers) > 1000
    for taker in takers:
        assert (taker.pool.owned, taker.pool.leased) == (0, 0)
        for at, block in taker.pool._block_at.items():
            assert taker.memory.read(block) == CONTENT[at]
