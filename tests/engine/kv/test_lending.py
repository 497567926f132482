"""What an engine lends: leases by name, and fetches that follow what is being computed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.copies import LentBlock
from services.engine.kv.loan_requests import Chain, Fetch, Lookup, Release
from services.engine.kv.record import checksum, layout_digest
from services.shared.errors import DeadlineExceeded, FailedPrecondition, Overloaded
from services.shared.stream.generation import CacheControl, Generation
from tests.engine.kv.lender import LAYOUT, Door, Lender, lent, prompt
from tests.engine.kv.plain_memory import PlainMemory
from tests.waiting import until

SECOND_MS = 60_000
"""Longer than any test waits."""


def chain_of(lender: Lender, generation: Generation, layout: str = LAYOUT) -> Chain:
    """Addresses of all full blocks of a prompt."""
    sequence = lender.harness.admission.admit(generation)
    return Chain(kv_layout_id=layout, addresses=sequence.full_addresses(lender.pool.size))


async def computed(lender: Lender, generation: Generation) -> Chain:
    """The chain of a prompt whose blocks are now cached."""
    await lender.generate(generation)
    await until(lambda: lender.loop.scheduler.idle)
    return chain_of(lender, generation)


async def all_of(blocks: AsyncGenerator[list[LentBlock], None]) -> list[int]:
    """Places of the blocks that came, each of them sound."""
    async with aclosing(blocks):
        return [block.index async for portion in blocks for block in portion]


def fetching(lender: Lender, fetch: Fetch) -> asyncio.Task[list[int]]:
    return asyncio.ensure_future(all_of(lender.lending.fetch(fetch)))


def waiting(lender: Lender) -> int:
    return len(lender.lending._following._waiting)


async def test_what_is_found_without_a_lease_is_only_told() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        found = await lender.lending.lookup(Lookup(chain=chain))
        assert (found.blocks, found.loan) == (8, None)
        assert lender.pool.leased == 0


async def test_the_first_blocks_of_a_chain_are_found_up_to_one_that_is_not_there() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        cut = Chain(kv_layout_id=LAYOUT, addresses=[*chain.addresses[:3], b"x" * 16])
        assert (await lender.lending.lookup(Lookup(chain=cut))).blocks == 3
        gap = Chain(kv_layout_id=LAYOUT, addresses=[b"x" * 16, *chain.addresses])
        assert (await lender.lending.lookup(Lookup(chain=gap, lease_ms=1000))).loan is None


async def test_a_lease_holds_until_it_is_given_back() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        found = await lender.lending.lookup(Lookup(chain=chain, lease_ms=SECOND_MS))
        assert found.loan is not None
        assert (found.blocks, found.loan.expires_ms, lender.pool.leased) == (8, SECOND_MS, 8)
        release = Release(lease_id=found.loan.id, incarnation=lender.lending.incarnation)
        assert lender.lending.release(release) is True
        await until(lambda: lender.pool.cached == 8)
        assert lender.lending.release(release) is False


async def test_a_lease_of_another_life_is_none_of_ours() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        found = await lender.lending.lookup(Lookup(chain=chain, lease_ms=SECOND_MS))
        assert found.loan is not None
        old = lender.lending.incarnation ^ 1
        assert not lender.lending.release(Release(lease_id=found.loan.id, incarnation=old))
        assert lender.pool.leased == 8
        now = lender.lending.incarnation
        assert lender.lending.release(Release(lease_id=found.loan.id, incarnation=now))


async def test_a_lease_ends_by_itself_while_the_engine_is_idle() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        found = await lender.lending.lookup(Lookup(chain=chain, lease_ms=1))
        assert found.loan is not None
        await until(lambda: lender.pool.cached == 8)
        release = Release(lease_id=found.loan.id, incarnation=lender.lending.incarnation)
        assert lender.lending.release(release) is False


async def test_lives_have_different_names() -> None:
    async with lent() as one, lent() as other:
        assert one.lending.incarnation != other.lending.incarnation


async def test_another_layout_is_told_both_names() -> None:
    async with lent() as lender:
        other = Chain(kv_layout_id="another", addresses=[])
        with pytest.raises(FailedPrecondition, match="'layout', got 'another'"):
            await lender.lending.lookup(Lookup(chain=other))
        with pytest.raises(FailedPrecondition, match="'layout', got 'another'"):
            await all_of(lender.lending.fetch(Fetch(chain=other)))


async def test_blocks_come_in_order_with_sums_over_who_they_are() -> None:
    memory = PlainMemory(8, 3 * 2**18)
    contents = {bytes([at]) * 16: bytes([at]) * memory.block_bytes for at in range(5)}
    async with lent(memory, blocks=8) as lender:
        await lender.publish(contents)
        chain = Chain(kv_layout_id=LAYOUT, addresses=list(contents))
        at = 0
        async for portion in lender.lending.fetch(Fetch(chain=chain)):
            for block in portion:
                address = chain.addresses[at]
                assert (block.index, bytes(block.payload)) == (at, contents[address])
                assert block.checksum == checksum(address, layout_digest(LAYOUT), block.payload)
                at += 1
        assert at == 5


async def test_a_fetch_ends_at_the_first_block_that_nobody_computes() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        longer = Chain(kv_layout_id=LAYOUT, addresses=[*chain.addresses, b"x" * 16])
        assert await all_of(lender.lending.fetch(Fetch(chain=longer))) == list(range(8))


async def test_a_fetch_follows_a_prompt_while_it_is_computed() -> None:
    async with lent(held=True) as lender:
        generation = prompt(0, output=4)
        await lender.generate(generation)
        chain = chain_of(lender, generation)
        async with aclosing(lender.lending.fetch(Fetch(chain=chain))) as portions:
            for step in range(4):
                coming = asyncio.ensure_future(anext(portions))
                await until(lambda: waiting(lender) == 1)
                assert not coming.done(), "nothing of this step is computed yet"
                lender.steps.step()
                assert [block.index for block in await coming] == [2 * step, 2 * step + 1]
            assert lender.loop.scheduler.running, "it goes on after its prompt"
            with pytest.raises(StopAsyncIteration):
                await anext(portions)


async def test_a_fetch_begins_in_the_middle_of_the_chain_that_is_computed() -> None:
    async with lent(held=True) as lender:
        generation = prompt(0)
        await lender.generate(generation)
        chain = chain_of(lender, generation)
        rest = Chain(kv_layout_id=LAYOUT, addresses=chain.addresses[5:])
        fetch = fetching(lender, Fetch(chain=rest))
        await until(lambda: waiting(lender) == 1)
        lender.steps.step(4)
        assert await fetch == [0, 1, 2]


async def test_a_sequence_that_waits_for_its_place_is_followed_too() -> None:
    async with lent(held=True, blocks=9) as lender:
        await lender.generate(prompt(1))
        generation = prompt(0)
        await lender.generate(generation)
        fetch = fetching(lender, Fetch(chain=chain_of(lender, generation)))
        lender.steps.step()
        await until(lambda: lender.loop.scheduler.running)
        assert len(lender.loop.scheduler.waiting) == 1
        lender.steps.free()
        assert await fetch == list(range(8))


async def test_a_fetch_waits_for_a_sequence_that_comes_in_time() -> None:
    async with lent() as lender:
        generation = prompt(0)
        fetch = fetching(lender, Fetch(chain=chain_of(lender, generation), wait_ms=SECOND_MS))
        await until(lambda: waiting(lender) == 1)
        await lender.generate(generation)
        assert await fetch == list(range(8))


async def test_a_fetch_ends_when_none_has_come_in_time() -> None:
    async with lent() as lender:
        chain = chain_of(lender, prompt(0))
        assert await all_of(lender.lending.fetch(Fetch(chain=chain, wait_ms=1))) == []


async def test_a_fetch_ends_when_what_it_follows_is_cancelled() -> None:
    async with lent(held=True) as lender:
        generation = prompt(0)
        await lender.generate(generation)
        fetch = fetching(lender, Fetch(chain=chain_of(lender, generation)))
        await until(lambda: waiting(lender) == 1)
        (sequence,) = lender.loop.scheduler
        lender.steps.step()
        await until(lambda: sequence.computed)
        lender.loop.command(lambda: lender.loop.cancel(sequence))
        assert await fetch == [0, 1]


async def test_one_that_computes_the_same_is_followed_when_the_first_is_cancelled() -> None:
    async with lent(held=True) as lender:
        generation = prompt(0)
        await lender.generate(generation)
        await lender.generate(generation)
        fetch = fetching(lender, Fetch(chain=chain_of(lender, generation)))
        await until(lambda: waiting(lender) == 1)
        first, _ = lender.loop.scheduler
        lender.loop.command(lambda: lender.loop.cancel(first))
        lender.steps.free()
        assert await fetch == list(range(8))


async def test_a_sequence_that_does_not_publish_is_not_followed() -> None:
    async with lent(held=True) as lender:
        generation = Generation(
            request_id="r", prompt_ids=prompt(0).prompt_ids, cache=CacheControl(write=False)
        )
        await lender.generate(generation)
        chain = chain_of(lender, generation)
        fetch = fetching(lender, Fetch(chain=chain))
        lender.steps.step()
        assert await fetch == []


async def test_an_engine_that_leaves_waits_for_no_new_sequence() -> None:
    async with lent() as lender:
        chain = chain_of(lender, prompt(0))
        fetch = fetching(lender, Fetch(chain=chain, wait_ms=SECOND_MS))
        await until(lambda: waiting(lender) == 1)
        lender.lending.leave()
        assert await fetch == []
        assert await all_of(lender.lending.fetch(Fetch(chain=chain, wait_ms=SECOND_MS))) == []


async def test_so_many_read_at_a_time_and_no_more() -> None:
    async with lent(door=Door(rules=PeerSettings(fetches=2))) as lender:
        chain = await computed(lender, prompt(0))
        other = chain_of(lender, prompt(1))
        fetch = fetching(lender, Fetch(chain=other, wait_ms=SECOND_MS))
        await until(lambda: waiting(lender) == 1)
        found = await lender.lending.lookup(Lookup(chain=chain, lease_ms=SECOND_MS))
        with pytest.raises(Overloaded, match="at most 2 may read"):
            await all_of(lender.lending.fetch(Fetch(chain=chain)))
        with pytest.raises(Overloaded, match="at most 2 may read"):
            await lender.lending.lookup(Lookup(chain=chain, lease_ms=SECOND_MS))
        assert (await lender.lending.lookup(Lookup(chain=chain))).blocks == 8
        fetch.cancel()
        await asyncio.wait([fetch])
        assert await all_of(lender.lending.fetch(Fetch(chain=chain))) == list(range(8))
        assert found.loan is not None
        lender.lending.release(
            Release(lease_id=found.loan.id, incarnation=lender.lending.incarnation)
        )


async def test_a_fetch_that_is_cancelled_amid_a_copy_lets_go_after_the_copy() -> None:
    memory = PlainMemory(8, 64)
    async with lent(memory, blocks=8) as lender:
        await lender.publish({b"a" * 16: b"1" * 64, b"b" * 16: b"2" * 64})
        memory.reading.clear()
        chain = Chain(kv_layout_id=LAYOUT, addresses=[b"a" * 16, b"b" * 16])
        fetch = fetching(lender, Fetch(chain=chain))
        await until(lambda: memory.copying)
        fetch.cancel()
        await asyncio.wait([fetch])
        assert await lender.ask(lambda: lender.pool.leased) == 2, "a thread reads them"
        memory.reading.set()


async def test_a_lease_that_is_still_on_its_way_ends_with_who_asked_for_it() -> None:
    async with lent() as lender:
        chain = await computed(lender, prompt(0))
        go_on, holding = threading.Event(), threading.Event()

        def hold() -> None:
            holding.set()
            go_on.wait()

        lender.loop.command(hold)
        await until(holding.is_set)
        look = asyncio.ensure_future(lender.lending.lookup(Lookup(chain=chain, lease_ms=SECOND_MS)))
        fetch = fetching(lender, Fetch(chain=chain))
        await asyncio.sleep(0)
        for asking in (look, fetch):
            asking.cancel()
        await asyncio.wait([look, fetch])
        go_on.set()
        await until(lambda: lender.pool.cached == 8)


async def test_one_who_takes_nothing_is_no_longer_served() -> None:
    rules = PeerSettings(fetches=1)
    async with lent(door=Door(rules=rules, stall_s=0.01)) as lender:
        chain = await computed(lender, prompt(0))
        async with aclosing(lender.lending.fetch(Fetch(chain=chain))) as portions:
            await anext(portions)
            await until(lambda: lender.pool.cached == 8)
            assert await all_of(lender.lending.fetch(Fetch(chain=chain))) == list(range(8))
            with pytest.raises(DeadlineExceeded, match=r"nothing was taken for 0\.01 s"):
                await anext(portions)
