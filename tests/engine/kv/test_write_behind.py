"""What is worth it is written behind the steps, and no store holds the pool or the steps up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from services.engine.kv.cache_settings import WriteSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.record import BadRecord
from services.engine.kv.records import Records
from services.engine.kv.store import StoreFailed
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Skip, Tier
from services.engine.kv.write_behind import WriteBehind
from services.engine.sequence import Sequence
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import CacheControl, Generation, Sampling, Stopping
from tests.engine.harness import Harness, simulated
from tests.engine.kv.shelf import Shelf
from tests.waiting import until

SIZE = 4


@dataclass
class Bed:
    harness: Harness
    shelf: Shelf
    records: Records
    switch: CacheSwitch
    figures: TierFigures
    writer: WriteBehind

    def run(self, prompt: list[int], max_tokens: int = 1, **cache: object) -> Sequence:
        """Computes a prompt and as many tokens; gives it as it was admitted."""
        generation = Generation(
            request_id="r",
            prompt_ids=prompt,
            sampling=Sampling(seed=1),
            stopping=Stopping(max_tokens=max_tokens, ignore_eos=True),
            cache=CacheControl(**cache),  # type: ignore[arg-type]  # a test's own words
        )
        self.harness.outputs([generation])
        return self.harness.admission.admit(generation)

    async def until(self, condition: Callable[[], object]) -> None:
        """The loop takes its commands meanwhile."""

        def holds() -> bool:
            self.harness.loop.step()
            return bool(condition())

        await until(holds)

    async def settled(self) -> None:
        """Nothing waits to be written, and no block is leased."""
        await self.until(lambda: not self.writer._pending)
        self.harness.parts.pool.audit()
        assert self.harness.parts.pool.leased == 0

    def stored(self, sequence: Sequence) -> list[bool]:
        return [address in self.shelf.records for address in sequence.full_addresses(SIZE)]


@asynccontextmanager
async def bed(prefix_tokens: int = 4096, queue_blocks: int = 64) -> AsyncIterator[Bed]:
    harness = Harness(simulated(blocks=64, size=SIZE))
    shelf, switch, figures = Shelf(), CacheSwitch(), TierFigures()
    records = Records(shelf, "layout")
    rules = WriteSettings(prefix_tokens=prefix_tokens, queue_blocks=queue_blocks)
    memory = harness.parts.memory
    writer = WriteBehind(harness.loop, memory, records, rules, switch=switch, figures=figures)
    harness.loop.scheduler.keeper = writer
    try:
        yield Bed(harness, shelf, records, switch, figures, writer)
    finally:
        shelf.passing.set()
        assert await writer.close()


async def test_the_blocks_of_a_prompt_are_written_as_they_were_computed() -> None:
    async with bed() as cached:
        sequence = cached.run([*range(10, 30)])
        await cached.settled()
        assert cached.stored(sequence) == [True] * 5
        pool, memory = cached.harness.parts.pool, cached.harness.parts.memory
        addresses = sequence.full_addresses(SIZE)
        for block, address in zip(pool.match(addresses), addresses, strict=True):
            assert cached.records.read(address) == memory.read(block)
        assert (cached.figures.written_blocks, cached.figures.written_bytes) == (5, 5 * 16)


async def test_what_follows_the_beginning_waits_until_it_is_used_again() -> None:
    async with bed(prefix_tokens=8) as cached:
        prompt = [*range(10, 31)]
        sequence = cached.run(prompt)
        await cached.settled()
        assert cached.stored(sequence) == [True] * 2 + [False] * 3
        assert cached.figures.skips == {Skip.NOT_WORTH: 3}
        cached.run(prompt)
        await cached.settled()
        assert cached.stored(sequence) == [True] * 5
        assert cached.figures.written_blocks == 5


async def test_what_is_pinned_is_written_at_once() -> None:
    async with bed(prefix_tokens=0) as cached:
        sequence = cached.run([*range(10, 30)], pinned_tokens=13)
        await cached.settled()
        assert cached.stored(sequence) == [True] * 3 + [False] * 2


async def test_outputs_are_written_when_a_prompt_begins_with_them() -> None:
    async with bed() as cached:
        sequence = cached.run([*range(10, 18)], max_tokens=9)
        await cached.settled()
        assert cached.stored(sequence) == [True] * 2
        (output,) = cached.harness.outputs([sequence.generation])
        longer = cached.run([*range(10, 18), *output])
        await cached.settled()
        assert cached.stored(longer) == [True] * 4


async def test_nothing_leaves_where_the_caller_forbids_it() -> None:
    async with bed() as cached:
        prompt = [*range(10, 31)]
        sequence = cached.run(prompt, write=False)
        cached.run(prompt, write=False, pinned_tokens=21)
        await cached.settled()
        assert not cached.shelf.records
        assert cached.shelf.asked == cached.shelf.put_calls == 0
        cached.run(prompt)
        cached.run(prompt, write=False)
        await cached.settled()
        assert cached.stored(sequence) == [True] * 5


async def test_what_is_there_is_not_written_again() -> None:
    async with bed() as cached:
        cached.run([*range(10, 31)])
        await cached.settled()
        cached.run([*range(10, 31)])
        await cached.settled()
        assert not cached.figures.skips
        cached.harness.parts.pool.flush()
        cached.run([*range(10, 31)])
        await cached.settled()
        assert cached.figures.skips == {Skip.PRESENT: 5}
        assert cached.shelf.put_calls == 5


async def test_a_bad_record_is_written_anew() -> None:
    async with bed() as cached:
        sequence = cached.run([*range(10, 31)])
        await cached.settled()
        address = sequence.full_addresses(SIZE)[1]
        cached.shelf.records[address] = b"bad"
        with pytest.raises(BadRecord):
            cached.records.read(address)
        cached.harness.parts.pool.flush()
        cached.run([*range(10, 31)])
        await cached.settled()
        assert cached.records.read(address) is not None


async def test_equal_prompts_side_by_side_are_written_once() -> None:
    async with bed() as cached:
        cached.shelf.passing.clear()
        generation = cached.run([*range(10, 31)]).generation
        cached.harness.parts.pool.flush()
        cached.harness.outputs([generation, generation])
        cached.shelf.passing.set()
        await cached.settled()
        assert cached.figures.written_blocks == 5


async def test_a_store_that_hangs_holds_no_block_and_no_step() -> None:
    async with bed(queue_blocks=8) as cached:
        cached.shelf.passing.clear()
        for number in range(10):
            cached.run([*range(10 + 30 * number, 30 + 30 * number)])
        pool = cached.harness.parts.pool
        await cached.until(lambda: pool.leased == 0)
        assert cached.figures.skips == {Skip.QUEUE_FULL: 42}
        cached.shelf.passing.set()
        await cached.settled()
        assert cached.figures.written_blocks == 8


async def test_what_was_left_out_is_written_when_it_is_used_again() -> None:
    async with bed(queue_blocks=3) as cached:
        cached.shelf.passing.clear()
        sequence = cached.run([*range(10, 31)])
        assert cached.figures.skips == {Skip.QUEUE_FULL: 2}
        cached.shelf.passing.set()
        await cached.settled()
        cached.run([*range(10, 31)])
        await cached.settled()
        assert cached.stored(sequence) == [True] * 5


async def test_a_store_that_fails_costs_what_was_on_its_way() -> None:
    async with bed() as cached:
        cached.shelf.failure = StoreFailed("full")
        sequence = cached.run([*range(10, 31)])
        await cached.settled()
        assert cached.figures.skips == {Skip.FAILED: 5}
        cached.shelf.failure = None
        cached.run([*range(10, 31)])
        await cached.settled()
        assert cached.stored(sequence) == [True] * 5


async def test_switched_off_all_that_waits_is_dropped_and_no_write_begins() -> None:
    async with bed() as cached:
        cached.shelf.passing.clear()
        cached.run([*range(10, 31)])
        await cached.until(lambda: cached.shelf.asked)
        cached.run([*range(110, 131)])
        cached.switch.set(enabled=False)
        assert not await cached.writer.quiet(0)
        cached.shelf.passing.set()
        assert await cached.writer.quiet(30)
        await cached.settled()
        cached.run([*range(210, 231)])
        await cached.settled()
        assert cached.figures.skips == {Skip.OFF: 15}
        assert cached.shelf.put_calls == 0
        cached.switch.set(enabled=True)
        cached.run([*range(210, 231)])
        await cached.settled()
        assert cached.figures.written_blocks == 5


async def test_switched_off_a_prompt_learns_why_its_blocks_were_not_looked_for() -> None:
    async with bed() as cached:
        cached.switch.set(enabled=False)
        cached.run([*range(10, 31)])
        assert cached.figures.misses == {CacheMiss.OFF: 5}
        cached.run([*range(10, 31)])
        assert cached.figures.misses == {CacheMiss.OFF: 5}


async def test_what_came_from_the_store_is_not_written_back() -> None:
    async with bed() as cached:
        sequence = cached.run([*range(10, 31)])
        await cached.settled()
        again = cached.harness.admission.admit(sequence.generation)
        again.fetched = dict.fromkeys(again.full_addresses(SIZE), Tier.SERVICE)
        cached.writer._worth._known.clear()
        cached.harness.loop.add(again)
        cached.harness.run()
        assert not cached.writer._pending


async def test_at_a_close_what_waits_is_written() -> None:
    async with bed() as cached:
        sequence = cached.run([*range(10, 31)])
        assert await cached.writer.close()
        assert cached.stored(sequence) == [True] * 5


async def test_a_close_does_not_wait_for_a_store_that_hangs() -> None:
    async with bed() as cached:
        cached.shelf.passing.clear()
        cached.run([*range(10, 31)])
        await cached.until(lambda: cached.shelf.asked)
        cached.run([*range(110, 131)])
        closing = asyncio.ensure_future(cached.writer.close())
        assert not await closing
        assert sum(cached.figures.skips.values()) > 0
