"""Blocks that come before their prompts: from whom, how many, and what is told of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from services.engine.kv.supply import Given, Wanted
from services.engine.kv.tier import Tier
from services.shared.stream.events import CachedTokens, CacheMiss
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    QualityOfService,
    RoutingHints,
    Sampling,
    Stopping,
)
from tests.engine.harness import Harness, simulated
from tests.engine.kv.filling_bed import Bed, filling
from tests.engine.kv.stock import Stock, computed_blocks
from tests.waiting import until


def generation(
    number: int = 0,
    prompt: int = 42,
    *,
    salt: bytes = b"",
    tenant: str | None = None,
    read: bool = True,
    peer: str | None = None,
) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + (number * 7 + index) % 900 for index in range(prompt)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=12),
        cache=CacheControl(salt=salt, read=read),
        quality_of_service=QualityOfService(tenant=tenant),
        routing=RoutingHints(prefill_peer=peer),
    )


def outputs(*generations: Generation) -> list[list[int]]:
    return Harness(simulated(blocks=400)).outputs(generations)


async def test_what_a_supply_has_is_not_computed_and_told_by_tier() -> None:
    stock = Stock(computed_blocks(simulated(), [generation()]))
    async with filling(simulated(), [stock]) as bed:
        (one,) = await bed.finish(generation())
        end = await one.finished()
    assert [one.ids] == outputs(generation())
    assert one.accepted.cached_tokens == CachedTokens(service=40)
    assert end.timeline.cached_tokens == CachedTokens(service=40)
    assert end.usage.cached_tokens == 40
    assert end.timeline.fetch_us > 0
    assert end.timeline.queued_us >= 0
    assert end.timeline.cache_miss is None


async def test_each_supply_goes_on_where_the_one_before_stopped() -> None:
    blocks = computed_blocks(simulated(), [generation()])
    host = Stock(blocks, Tier.HOST, most=2)
    peer = Stock(blocks, Tier.PEER, most=3, miss=CacheMiss.TIMEOUT)
    service = Stock(blocks, Tier.SERVICE, most=4, miss=CacheMiss.CHECKSUM)
    async with filling(simulated(), [host, peer, service]) as bed:
        (one,) = await bed.finish(generation(peer="127.0.0.1:1"))
    assert [one.ids] == outputs(generation())
    assert one.accepted.cached_tokens == CachedTokens(host=8, peer=12, service=16)
    assert (await one.finished()).timeline.cache_miss is CacheMiss.CHECKSUM
    assert [len(stock.asked[0].addresses) for stock in (host, peer, service)] == [10, 8, 5]
    assert [stock.asked[0].peer for stock in (host, peer)] == ["127.0.0.1:1"] * 2
    assert [stock.closed for stock in (host, peer, service)] == [1, 1, 1]


@pytest.mark.parametrize("blocks", [103, 250])
async def test_long_prompts_come_while_others_give_way(blocks: int) -> None:
    wanted = [generation(number, prompt=401) for number in (0, 60)]
    stock = Stock(computed_blocks(simulated(blocks=400), wanted))
    async with filling(simulated(blocks=blocks), [stock]) as bed:
        told = [(await bed.finish(one))[0] for one in (*wanted, wanted[0])]
    assert [one.ids for one in told] == outputs(*wanted, wanted[0])
    assert [one.accepted.cached_tokens.total for one in told] == [400] * 3
    assert [len(one.addresses) for one in stock.asked] == [100] * len(stock.asked)
    assert len(stock.asked) == (3 if blocks == 103 else 2)


async def test_nobody_is_asked_for_what_the_pool_has() -> None:
    stock = Stock(computed_blocks(simulated(), [generation()]))
    async with filling(simulated(), [stock]) as bed:
        await bed.finish(generation())
        (again,) = await bed.finish(generation())
    assert len(stock.asked) == 1
    assert again.accepted.cached_tokens == CachedTokens(device=40)


@pytest.mark.parametrize(
    "unfit",
    [generation(prompt=4), generation(read=False), generation(salt=b"other")],
    ids=["no whole block before the last token", "reads no cache", "nobody has it"],
)
async def test_nobody_is_asked_in_vain(unfit: Generation) -> None:
    stock = Stock(computed_blocks(simulated(), [generation()]))
    async with filling(simulated(), [stock]) as bed:
        (one,) = await bed.finish(unfit)
        end = await one.finished()
    assert not stock.asked
    assert one.accepted.cached_tokens == CachedTokens()
    assert end.timeline.fetch_us == 0


async def test_tenants_get_nothing_of_each_other() -> None:
    stock = Stock(computed_blocks(simulated(), [generation(tenant="a")]))
    async with filling(simulated(), [stock]) as bed:
        (one,) = await bed.finish(generation(tenant="b"))
        (other,) = await bed.finish(generation(tenant="a"))
    assert one.accepted.cached_tokens == CachedTokens()
    assert other.accepted.cached_tokens == CachedTokens(service=40)


class Buggy:
    """Gives a block and then breaks."""

    tier = Tier.PEER

    def __init__(self, stock: Stock) -> None:
        self.stock = stock

    def can_supply(self, wanted: Wanted) -> bool:
        return self.stock.can_supply(wanted)

    async def supply(self, wanted: Wanted) -> AsyncGenerator[Given, None]:
        async for part in self.stock.supply(wanted):
            yield part
            raise RuntimeError("a supply's bug")


async def test_a_supply_with_a_bug_costs_its_blocks_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    blocks = computed_blocks(simulated(), [generation()])
    buggy, stock = Buggy(Stock(blocks)), Stock(blocks, most=3)
    async with filling(simulated(), [buggy, stock]) as bed:
        (one,) = await bed.finish(generation())
    assert [one.ids] == outputs(generation())
    assert one.accepted.cached_tokens == CachedTokens(peer=4, service=12)
    assert "a supply failed" in caplog.text


async def test_a_block_of_another_size_is_a_bug_and_not_used() -> None:
    blocks = computed_blocks(simulated(), [generation()])
    async with filling(simulated(), [Stock(blocks, spoil=lambda block: block[:-1])]) as bed:
        (one,) = await bed.finish(generation())
    assert [one.ids] == outputs(generation())
    assert one.accepted.cached_tokens == CachedTokens()
    assert (await one.finished()).timeline.cache_miss is CacheMiss.UNREACHABLE


@pytest.mark.parametrize("at_once", [1, 3])
async def test_what_finds_no_room_is_computed_and_told(at_once: int) -> None:
    blocks = computed_blocks(simulated(), [generation()])
    stock = Stock(blocks, at_once=at_once)
    async with filling(simulated(blocks=14), [stock]) as bed:
        held = await held_blocks(bed, 14 - 4)
        one = bed.ask(generation())
        await until(lambda: stock.closed)
        bed.loop.command(lambda: bed.loop.scheduler.pool.end_lease(held))
        end = await one.finished()
    assert [one.ids] == outputs(generation())
    assert end.timeline.cache_miss is CacheMiss.NO_ROOM
    assert one.accepted.cached_tokens == CachedTokens(service=16)
    misses = bed.figures[Tier.SERVICE].misses
    assert misses == {CacheMiss.NO_ROOM: 10 - stock.figures.hit_blocks}


async def held_blocks(bed: Bed, number: int) -> list[int]:
    """Blocks that a transfer keeps."""
    held: list[int] = []
    bed.loop.command(lambda: held.extend(bed.loop.scheduler.pool.lease_blank(number)))
    await until(lambda: len(held) == number)
    return held


async def test_the_figures_add_up_to_what_the_prompts_wanted() -> None:
    """Usable blocks = hits of all tiers + computed; what a tier had not got the next was asked."""
    known = [generation(number, prompt=21 + 4 * number) for number in range(6)]
    blocks = computed_blocks(simulated(blocks=400), known)
    host, service = Stock(blocks, Tier.HOST, most=2), Stock(blocks, most=3)
    wanted = [*known, *known[:3], *(generation(100 + number) for number in range(3))]
    async with filling(simulated(blocks=400), [host, service]) as bed:
        told = [end for one in wanted for end in await bed.finish(one)]
        device = bed.figures[Tier.DEVICE]
    usable = sum((len(one.prompt_ids) - 1) // 4 for one in wanted)
    cached = [(await one.finished()).timeline.cached_tokens for one in told]
    computed = usable - sum(tokens.total for tokens in cached) // 4
    hits = [device.hit_blocks, host.figures.hit_blocks, service.figures.hit_blocks]
    assert usable == sum(hits) + computed
    assert hits == [
        sum(tokens.device for tokens in cached) // 4,
        sum(tokens.host for tokens in cached) // 4,
        sum(tokens.service for tokens in cached) // 4,
    ]
    assert all(hits)
    assert device.misses == {CacheMiss.ABSENT: usable - device.hit_blocks}
    assert host.figures.misses.total() == service.figures.hit_blocks + sum(
        service.figures.misses.values()
    )


async def test_a_block_that_gave_way_is_told_from_one_that_never_was_there() -> None:
    async with filling(simulated(blocks=16), []) as bed:
        (first,) = await bed.finish(generation(0))
        await bed.finish(generation(50), generation(60))
        (again,) = await bed.finish(generation(0))
    assert (await first.finished()).timeline.cache_miss is CacheMiss.ABSENT
    assert (await again.finished()).timeline.cache_miss is CacheMiss.EVICTED
    assert bed.figures[Tier.DEVICE].misses[CacheMiss.EVICTED] == 10
