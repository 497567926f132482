"""Fills that end early, wait for each other, or leave something behind that is still written."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace

import pytest

from services.engine.asking import asked
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import Payload
from services.shared.errors import Code
from services.shared.stream.events import CachedTokens, CancelReason, Failed
from services.shared.stream.generation import Generation, QualityOfService
from tests.engine.asked import Asked
from tests.engine.harness import simulated
from tests.engine.kv.filling_bed import Bed, filling
from tests.engine.kv.stock import Stock, computed_blocks
from tests.engine.kv.test_filling import generation, outputs
from tests.waiting import until


def shut_stock(*known: Generation) -> Stock:
    """One that gives nothing until its gate is opened."""
    return Stock(computed_blocks(simulated(blocks=400), known), gate=asyncio.Event())


async def begun(bed: Bed, stock: Stock, wanted: Generation) -> Asked:
    """A generation whose fill waits for its first block."""
    before = len(stock.asked)
    one = bed.ask(wanted)
    await until(lambda: len(stock.asked) > before)
    return one


async def steps(bed: Bed) -> None:
    """Returns when what was commanded until now is done."""
    await asked(bed.loop, lambda: None)


async def test_a_cancelled_generation_gives_everything_back_and_never_enters() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        one = await begun(bed, stock, generation())
        assert await bed.leased() == 10
        one.cancel(CancelReason.CLIENT_GONE)
        await until(lambda: stock.closed)
        await steps(bed)
        assert await bed.leased() == 0
        assert bed.loop.progress.steps == 0
        assert not one.events
        assert bed.engine.load().waiting == 0


async def test_cancelled_before_it_began_to_be_filled_it_never_enters() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        bed.ask(generation()).cancel(CancelReason.CLIENT_GONE)
        late = bed.ask(generation(1, prompt=10))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        late.cancel(CancelReason.CLIENT_GONE)
        await steps(bed)
        await steps(bed)
        assert await bed.leased() == 0
        assert not stock.asked


async def test_the_deadline_passes_in_a_fill() -> None:
    stock = shut_stock(generation())
    hurried = replace(generation(), quality_of_service=QualityOfService(timeout_ms=500))
    async with filling(simulated(), [stock]) as bed:
        one = bed.ask(hurried)
        await one.ended.wait()
        assert stock.closed == len(stock.asked), "a slow machine may not have asked in time"
    assert isinstance(one.end, Failed)
    assert one.end.code is Code.DEADLINE_EXCEEDED


async def test_an_engine_that_breaks_off_ends_its_fills() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        one = await begun(bed, stock, generation())
        await bed.engine.drain(timeout_s=0)
        assert isinstance(one.end, Failed)
        assert one.end.retryable
        await until(lambda: stock.closed)
        await steps(bed)
        assert await bed.leased() == 0


async def test_a_drain_waits_for_fills() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        one = await begun(bed, stock, generation())
        draining = asyncio.ensure_future(bed.engine.drain())
        stock.gate.set()
        await draining
        await one.finished()


async def test_what_is_being_filled_waits_in_the_load_and_is_no_work_of_the_loop() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        one = await begun(bed, stock, generation())
        load = bed.engine.load()
        assert (load.waiting, load.pending_prompt_tokens, load.outstanding_tokens) == (1, 41, 54)
        assert load.progress_age_ms == 0
        stock.gate.set()
        await one.finished()
        await until(lambda: bed.engine.load().waiting == 0)


async def test_one_of_those_that_want_the_same_block_asks_for_it() -> None:
    alike = [generation(), replace(generation(), request_id="r1"), generation(prompt=30)]
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        first = await begun(bed, stock, alike[0])
        others = [bed.ask(one) for one in alike[1:]]
        await steps(bed)
        stock.gate.set()
        for one in (first, *others):
            await one.finished()
    assert len(stock.asked) == 1
    assert first.accepted.cached_tokens == CachedTokens(service=40)
    assert [one.accepted.cached_tokens.device for one in others] == [40, 28]
    assert [one.ids for one in (first, *others)] == outputs(*alike)


async def test_who_shares_a_part_waits_for_that_part_only() -> None:
    stock = shut_stock(generation())
    stock.holds = 6
    async with filling(simulated(), [stock]) as bed:
        first = await begun(bed, stock, generation())
        second = bed.ask(generation(prompt=22))
        await second.finished()
        third = bed.ask(generation(prompt=30))
        await steps(bed)
        assert not third.events
        assert not first.events
        assert len(stock.asked) == 1
        stock.gate.set()
        await first.finished()
        await third.finished()
    assert second.accepted.cached_tokens == CachedTokens(device=20)
    assert third.accepted.cached_tokens == CachedTokens(device=28)
    assert first.accepted.cached_tokens == CachedTokens(service=40)
    assert [one.ids for one in (first, second)] == outputs(generation(), generation(prompt=22))


async def test_the_next_one_asks_if_the_first_is_cancelled() -> None:
    stock = shut_stock(generation())
    async with filling(simulated(), [stock]) as bed:
        first = await begun(bed, stock, generation())
        second = bed.ask(generation())
        await steps(bed)
        first.cancel(CancelReason.CLIENT_GONE)
        await until(lambda: len(stock.asked) == 2)
        stock.gate.set()
        await second.finished()
    assert second.accepted.cached_tokens == CachedTokens(service=40)


@dataclass(frozen=True, slots=True)
class SlowMemory:
    """A copy into it takes until it is allowed to end."""

    inner: BlockMemory
    allowed: threading.Event
    begun: threading.Event

    @property
    def block_bytes(self) -> int:
        return self.inner.block_bytes

    def read(self, block: int) -> memoryview:
        return self.inner.read(block)

    def read_into(self, block: int, buffer: memoryview) -> None:
        self.inner.read_into(block, buffer)

    def write(self, block: int, payload: Payload) -> None:
        self.begun.set()
        self.allowed.wait()
        self.inner.write(block, payload)


async def test_a_blank_goes_back_only_when_nothing_is_written_into_it() -> None:
    stock = Stock(computed_blocks(simulated(), [generation()]))
    parts = simulated()
    memory = SlowMemory(parts.memory, threading.Event(), threading.Event())
    async with filling(replace(parts, memory=memory), [stock]) as bed:
        one = bed.ask(generation())
        await until(memory.begun.is_set)
        one.cancel(CancelReason.CLIENT_GONE)
        await until(lambda: stock.closed)
        await steps(bed)
        assert await bed.leased() == 10
        memory.allowed.set()
        while await bed.leased():
            await steps(bed)


@pytest.mark.parametrize("prompt", [21, 42])
async def test_whoever_comes_after_a_cancelled_copy_gets_the_right_blocks(prompt: int) -> None:
    stock = Stock(computed_blocks(simulated(), [generation()]))
    parts = simulated()
    memory = SlowMemory(parts.memory, threading.Event(), threading.Event())
    wanted = generation(prompt=prompt)
    async with filling(replace(parts, memory=memory), [stock]) as bed:
        first = bed.ask(generation())
        await until(memory.begun.is_set)
        second = bed.ask(wanted)
        first.cancel(CancelReason.CLIENT_GONE)
        await steps(bed)
        memory.allowed.set()
        await second.finished()
    assert [second.ids] == outputs(wanted)
    assert second.accepted.cached_tokens == CachedTokens(service=prompt - 2 if prompt > 40 else 20)
