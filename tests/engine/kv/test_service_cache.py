"""The service cache gives the right blocks in their order, or tells why it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest

from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.records import Records
from services.engine.kv.service_cache import HUNG_CALLS, ServiceCache
from services.engine.kv.store import StoreFailed, StoreTimeout
from services.engine.kv.supply import AT_ONCE, Wanted
from services.engine.kv.switch import CacheSwitch
from services.shared.errors import Unavailable
from services.shared.stream.events import CacheMiss
from tests.engine.kv.shelf import Shelf, roomy
from tests.engine.kv.singly import singly
from tests.waiting import until

ADDRESSES = [bytes([number]) * 16 for number in range(10)]
WANTED = Wanted(addresses=ADDRESSES)
PATIENT = CacheSettings(read_timeout_s=30)
HURRIED = CacheSettings(read_timeout_s=0.05)


def payload(index: int) -> memoryview:
    return memoryview(bytes([index]) * 64)


@dataclass
class Bed:
    cache: ServiceCache
    records: Records
    shelf: Shelf
    switch: CacheSwitch
    figures: TierFigures = field(default_factory=TierFigures)

    def fill(self, count: int) -> None:
        for index in range(count):
            self.records.write(ADDRESSES[index], roomy(payload(index)))

    async def read(self) -> tuple[int, CacheMiss | None]:
        """How many blocks came, all of them right, and why the next one did not."""
        count = 0
        async with aclosing(singly(self.cache.supply(WANTED))) as given:
            async for part in given:
                if isinstance(part, CacheMiss):
                    return count, part
                assert part == payload(count)
                count += 1
        return count, None


@asynccontextmanager
async def bed(settings: CacheSettings = PATIENT) -> AsyncIterator[Bed]:
    shelf, switch, figures = Shelf(), CacheSwitch(), TierFigures()
    records = Records(shelf, "layout")
    cache = ServiceCache(records, switch, figures, settings)
    try:
        yield Bed(cache, records, shelf, switch, figures)
    finally:
        shelf.passing.set()
        assert await cache.close()


async def test_all_blocks_come_in_their_order() -> None:
    async with bed() as cached:
        cached.fill(10)
        assert await cached.read() == (10, None)
        assert (cached.figures.hit_blocks, cached.figures.read_bytes) == (10, 640)
        assert not cached.figures.misses


async def test_blocks_are_read_several_by_a_thread() -> None:
    async with bed() as cached:
        cached.fill(10)
        parts = [part async for part in cached.cache.supply(WANTED)]
        sizes = [len(part) for part in parts if not isinstance(part, CacheMiss)]
        assert sizes == [AT_ONCE] * (10 // AT_ONCE) + [10 % AT_ONCE]


async def test_blocks_come_up_to_the_first_that_is_not_there() -> None:
    async with bed() as cached:
        cached.fill(10)
        del cached.shelf.records[ADDRESSES[6]]
        assert await cached.read() == (6, CacheMiss.ABSENT)
        assert cached.figures.misses == {CacheMiss.ABSENT: 4}


async def test_nothing_costs_one_question() -> None:
    async with bed() as cached:
        assert await cached.read() == (0, CacheMiss.ABSENT)
        assert cached.shelf.asked == 1


async def test_what_gave_way_since_the_question_is_told_as_such() -> None:
    async with bed() as cached:
        cached.fill(3)
        cached.shelf.lies = True
        assert await cached.read() == (3, CacheMiss.EVICTED)


@pytest.mark.parametrize("spoilt", [b"", b"short", None])
@pytest.mark.parametrize("index", [AT_ONCE, AT_ONCE + 2])
async def test_a_bad_record_is_not_used_and_not_asked_for_again(
    spoilt: bytes | None, index: int
) -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.shelf.records[ADDRESSES[index]] = (
            cached.shelf.records[ADDRESSES[5]] if spoilt is None else spoilt
        )
        assert await cached.read() == (index, CacheMiss.CHECKSUM)
        assert await cached.read() == (index, CacheMiss.ABSENT)
        left = 10 - index
        assert cached.figures.misses == {CacheMiss.CHECKSUM: left, CacheMiss.ABSENT: left}
        cached.fill(10)
        assert await cached.read() == (10, None)


async def test_a_record_of_another_layout_is_told_as_such() -> None:
    async with bed() as cached:
        cached.fill(2)
        Records(cached.shelf, "another").write(ADDRESSES[1], roomy(payload(1)))
        assert await cached.read() == (1, CacheMiss.LAYOUT)


@pytest.mark.parametrize(
    ("failure", "cause"),
    [
        (StoreFailed("refused"), CacheMiss.UNREACHABLE),
        (StoreTimeout("silent"), CacheMiss.TIMEOUT),
    ],
)
async def test_a_store_that_fails_has_nothing(failure: StoreFailed, cause: CacheMiss) -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.shelf.failure = failure
        assert await cached.read() == (0, cause)
        cached.shelf.failure = None
        assert await cached.read() == (10, None)


async def test_a_store_that_hangs_is_waited_for_until_the_time_is_up() -> None:
    async with bed(HURRIED) as cached:
        cached.shelf.passing.clear()
        assert await cached.read() == (0, CacheMiss.TIMEOUT)
        assert cached.figures.misses == {CacheMiss.TIMEOUT: 10}


async def test_calls_that_hang_keep_further_ones_from_hanging() -> None:
    async with bed(HURRIED) as cached:
        cached.fill(10)
        cached.shelf.passing.clear()
        asked = cached.shelf.asked
        for _ in range(HUNG_CALLS):
            assert cached.cache.can_supply(WANTED)
            assert await cached.read() == (0, CacheMiss.TIMEOUT)
        assert not cached.cache.can_supply(WANTED)
        assert await cached.read() == (0, CacheMiss.UNREACHABLE)
        assert cached.shelf.asked == asked + HUNG_CALLS
        cached.shelf.passing.set()
        await until(lambda: cached.cache.can_supply(WANTED))


async def test_what_came_before_the_store_hung_is_used() -> None:
    async with bed(CacheSettings(read_timeout_s=0.5)) as cached:
        addresses = [number.to_bytes(16) for number in range(40)]
        for index, address in enumerate(addresses):
            cached.records.write(address, roomy(payload(index)))
        given = singly(cached.cache.supply(Wanted(addresses=addresses)))
        parts = [await anext(given) for _ in range(3)]
        cached.shelf.passing.clear()
        parts += [part async for part in given]
        assert parts[-1] is CacheMiss.TIMEOUT
        came = len(parts) - 1
        assert parts[:-1] == [payload(index) for index in range(came)]
        assert came >= 3
        assert cached.figures.misses == {CacheMiss.TIMEOUT: 40 - came}


async def test_switched_off_nothing_is_asked() -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.switch.set(enabled=False)
        assert not cached.cache.can_supply(WANTED)
        assert await cached.read() == (0, CacheMiss.OFF)
        assert cached.shelf.asked == 0
        cached.switch.set(enabled=True)
        assert await cached.read() == (10, None)


async def test_switched_off_what_is_in_flight_is_dropped_at_once() -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.shelf.passing.clear()
        reading = asyncio.ensure_future(cached.read())
        await until(lambda: cached.shelf.asked)
        cached.switch.set(enabled=False)
        assert await reading == (0, CacheMiss.OFF)
        assert cached.figures.misses == {CacheMiss.OFF: 10}


async def test_switched_off_between_two_blocks_the_next_one_does_not_come() -> None:
    async with bed() as cached:
        cached.fill(10)
        given = cached.cache.supply(WANTED)
        assert await anext(given) == [payload(index) for index in range(AT_ONCE)]
        cached.switch.set(enabled=False)
        assert [part async for part in given] == [CacheMiss.OFF]


async def test_a_reader_that_leaves_early_is_no_miss() -> None:
    async with bed() as cached:
        cached.fill(10)
        given = cached.cache.supply(WANTED)
        await anext(given)
        await given.aclose()
        assert (cached.figures.hit_blocks, dict(cached.figures.misses)) == (AT_ONCE, {})


async def test_many_read_at_a_time() -> None:
    async with bed() as cached:
        cached.fill(10)
        assert await asyncio.gather(*(cached.read() for _ in range(50))) == [(10, None)] * 50


async def test_a_cancelled_read_leaves_nothing_behind() -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.shelf.passing.clear()
        reading = asyncio.ensure_future(cached.read())
        await until(lambda: cached.shelf.asked)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        cached.shelf.passing.set()
        assert await cached.read() == (10, None)


async def test_a_flush_drops_all_also_while_it_is_switched_off() -> None:
    async with bed() as cached:
        cached.fill(10)
        cached.switch.set(enabled=False)
        assert await cached.cache.flush() == 10
        assert not cached.shelf.records


async def test_a_flush_that_fails_says_why() -> None:
    async with bed() as cached:
        cached.shelf.failure = StoreFailed("refused")
        with pytest.raises(Unavailable, match="refused"):
            await cached.cache.flush()


async def test_a_close_waits_for_no_store_that_hangs() -> None:
    async with bed(HURRIED) as cached:
        cached.shelf.passing.clear()
        await cached.read()
        assert not await cached.cache.close()
