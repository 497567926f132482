"""Blocks that the pool gave up, kept within bounds and given back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.host_tier import HostTier
from services.engine.kv.supply import AT_ONCE, Wanted
from services.engine.kv.tier import Skip
from services.engine.simulated_memory import SimulatedMemory
from services.shared.byte_size import ByteSize
from services.shared.config import BadConfig
from services.shared.stream.events import CachedTokens, CacheMiss
from services.shared.stream.generation import Generation
from tests.engine.asked import Asked, ask
from tests.engine.harness import simulated
from tests.engine.kv.singly import singly
from tests.engine.kv.test_filling import generation, outputs
from tests.engine.served import Served, served

SIZE = 64
NAMES = [b"%016d" % number for number in range(10)]


def memory_of(blocks: int) -> SimulatedMemory:
    """Each block is full of its number."""
    memory = SimulatedMemory(blocks, SIZE // 4)
    for block in range(blocks):
        memory.write(block, bytes([block]) * SIZE)
    return memory


def tier_of(blocks: int) -> tuple[HostTier, TierFigures]:
    figures = TierFigures()
    return HostTier(memory_of(10), blocks * SIZE, figures), figures


def opened(tier: HostTier, names: Sequence[bytes]) -> AsyncGenerator[memoryview | CacheMiss, None]:
    return singly(tier.supply(Wanted(addresses=names)))


async def given(tier: HostTier, names: Sequence[bytes]) -> list[int | CacheMiss]:
    """The first byte of each block that comes, and why the next one does not."""
    async with aclosing(opened(tier, names)) as parts:
        return [part if isinstance(part, CacheMiss) else part[0] async for part in parts]


async def test_what_gave_way_is_found_in_order_up_to_the_first_that_is_not_there() -> None:
    tier, figures = tier_of(8)
    for block in (1, 2, 4):
        tier.keep(block, NAMES[block])
    assert await given(tier, NAMES[1:6]) == [1, 2, CacheMiss.ABSENT]
    assert await given(tier, [NAMES[4]]) == [4]
    assert (figures.hit_blocks, figures.read_bytes) == (3, 3 * SIZE)
    assert figures.misses == {CacheMiss.ABSENT: 3}
    assert (figures.written_blocks, figures.written_bytes) == (3, 3 * SIZE)


async def test_blocks_are_given_several_at_a_time() -> None:
    tier, _ = tier_of(8)
    for block in range(6):
        tier.keep(block, NAMES[block])
    async with aclosing(tier.supply(Wanted(addresses=NAMES[:7]))) as parts:
        given = [part if isinstance(part, CacheMiss) else len(part) async for part in parts]
    assert given == [AT_ONCE, 6 - AT_ONCE, CacheMiss.ABSENT]


async def test_it_is_worth_asking_only_for_what_is_there() -> None:
    tier, _ = tier_of(8)
    tier.keep(2, NAMES[2])
    assert tier.can_supply(Wanted(addresses=NAMES[1:4]))
    assert not tier.can_supply(Wanted(addresses=NAMES[3:6]))


async def test_what_was_used_longest_ago_gives_way() -> None:
    tier, _ = tier_of(3)
    for block in (1, 2, 3):
        tier.keep(block, NAMES[block])
    assert await given(tier, [NAMES[1]]) == [1]
    tier.keep(4, NAMES[4])
    assert await given(tier, [NAMES[2]]) == [CacheMiss.ABSENT]
    assert [await given(tier, [NAMES[block]]) for block in (1, 3, 4)] == [[1], [3], [4]]


async def test_what_is_pinned_gives_way_last_and_is_a_quarter_at_most() -> None:
    tier, _ = tier_of(4)
    tier.keep(1, NAMES[1], pinned=True)
    for block in range(2, 8):
        tier.keep(block, NAMES[block])
    assert await given(tier, [NAMES[1]]) == [1]
    tier.keep(8, NAMES[8], pinned=True)
    for block in (2, 3, 4):
        tier.keep(block, NAMES[block])
    assert await given(tier, [NAMES[8]]) == [8]
    assert await given(tier, [NAMES[1]]) == [CacheMiss.ABSENT]


async def test_a_block_is_kept_once_and_counts_as_used_when_it_comes_again() -> None:
    tier, figures = tier_of(2)
    for block in (1, 2, 1, 3):
        tier.keep(block, NAMES[block])
    assert await given(tier, [NAMES[1]]) == [1]
    assert figures.skips == {Skip.PRESENT: 1}


async def test_what_somebody_reads_gives_no_way() -> None:
    tier, figures = tier_of(2)
    tier.keep(1, NAMES[1])
    tier.keep(2, NAMES[2])
    async with (
        aclosing(opened(tier, [NAMES[1]])) as first,
        aclosing(opened(tier, [NAMES[2]])) as second,
    ):
        held = await anext(first)
        assert isinstance(held, memoryview)
        tier.keep(3, NAMES[3])
        assert await given(tier, [NAMES[2]]) == [CacheMiss.ABSENT]
        await anext(second, None)
        async with aclosing(opened(tier, [NAMES[3]])) as third:
            await anext(third)
            tier.keep(4, NAMES[4])
            assert figures.skips == {Skip.QUEUE_FULL: 1}
        assert held == bytes([1]) * SIZE
    assert await given(tier, [NAMES[1]]) == [1]


async def test_cleared_it_has_nothing_and_takes_as_much_as_before() -> None:
    tier, _ = tier_of(2)
    for again in range(3):
        tier.keep(1 + again, NAMES[1])
        tier.keep(2 + again, NAMES[2])
        async with aclosing(opened(tier, NAMES[1:2])) as reading:
            held = await anext(reading)
            assert isinstance(held, memoryview)
            assert tier.clear() == 2
            tier.keep(9, NAMES[9])
            tier.keep(8, NAMES[8])
            assert held[0] == 1 + again
        assert await given(tier, NAMES[1:3]) == [CacheMiss.ABSENT]
        tier.keep(7, NAMES[7])
        assert tier.clear() == 2


def cache(blocks: int) -> CacheSettings:
    return CacheSettings(host_bytes=ByteSize(blocks * 16))


async def told(subject: Served, wanted: Generation) -> Asked:
    one = ask(subject.engine, wanted)
    await one.finished()
    return one


async def displaced(subject: Served, number: int) -> None:
    """Other prompts have taken the whole pool."""
    for other in range(3):
        await told(subject, generation(number + 10 * other, prompt=60))


async def test_a_prompt_that_the_pool_gave_up_comes_back_from_host_memory() -> None:
    async with served(simulated(blocks=20), cache=cache(200)) as subject:
        await told(subject, generation())
        await displaced(subject, 100)
        again = await told(subject, generation())
        await displaced(subject, 200)
        third = await told(subject, generation())
        assert subject.caches.host is not None
        assert subject.caches.host.clear() > 0
        await displaced(subject, 300)
        last = await told(subject, generation(tenant="other"))
    assert again.accepted.cached_tokens == CachedTokens(host=40)
    assert again.ids == third.ids == outputs(generation())[0]
    assert third.accepted.cached_tokens.host == 40
    assert last.accepted.cached_tokens == CachedTokens()


async def test_host_memory_of_no_block_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"cache\.host_bytes must be 0 or >= 16.*got 15"):
        async with served(simulated(), cache=CacheSettings(host_bytes=ByteSize(15))):
            """Never reached."""


async def test_tenants_find_nothing_of_each_other_in_host_memory() -> None:
    async with served(simulated(blocks=20), cache=cache(200)) as subject:
        await told(subject, generation(tenant="a"))
        await displaced(subject, 100)
        other = await told(subject, generation(tenant="b"))
        await displaced(subject, 200)
        own = await told(subject, generation(tenant="a"))
    assert other.accepted.cached_tokens == CachedTokens()
    assert own.accepted.cached_tokens == CachedTokens(host=40)
