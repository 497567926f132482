"""Watchers of an engine's blocks hear of all that can be found, then of each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from services.engine.block_feed import BlockFeed
from services.engine.loop import EngineLoop
from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.generation import CacheControl, Generation, Sampling, Stopping
from tests.engine.harness import Harness, simulated
from tests.waiting import until


class Follower:
    """What a watcher was told."""

    def __init__(self) -> None:
        self.known: set[bytes] | None = None
        self.changes = 0

    def found(self, addresses: Iterable[bytes]) -> None:
        self.known = set(addresses)

    def changed(self, changes: BlockChanges) -> None:
        assert self.known is not None
        self.changes += 1
        self.known = self.known - set(changes.dropped) | set(changes.stored)


def generation(number: int, *, writes: bool = True) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + number, *range(10, 29)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=8),
        cache=CacheControl(write=writes),
    )


@asynccontextmanager
async def running(harness: Harness) -> AsyncIterator[EngineLoop]:
    thread = asyncio.ensure_future(asyncio.to_thread(harness.loop.run))
    try:
        yield harness.loop
    finally:
        harness.loop.command(harness.loop.stop)
        await thread


async def run(harness: Harness, *generations: Generation) -> None:
    """Runs generations to their end while the loop's thread has it."""
    ended = asyncio.Event()
    home = asyncio.get_running_loop()

    def add() -> None:
        for each in generations:
            harness.add(each)
        home.call_soon_threadsafe(ended.set)

    harness.loop.command(add)
    await ended.wait()
    await until(lambda: harness.loop.scheduler.idle)


def flushing(harness: Harness) -> Callable[[], None]:
    def flush() -> None:
        harness.parts.pool.flush()

    return flush


def findable(harness: Harness) -> set[bytes]:
    return set(harness.parts.pool._block_at)


async def test_a_watcher_hears_what_is_there_and_what_becomes_of_it() -> None:
    harness = Harness(simulated(blocks=16))
    feed, follower = BlockFeed(harness.loop), Follower()
    async with running(harness):
        await run(harness, generation(0))
        feed.watch(follower)
        await until(lambda: follower.known)
        assert follower.known == findable(harness)
        assert len(findable(harness)) == 6
        await run(harness, generation(1), generation(2), generation(3))
        await until(lambda: follower.known == findable(harness))
        assert len(findable(harness)) > 6
        harness.loop.command(flushing(harness))
        await until(lambda: follower.known == set())
    assert findable(harness) == set()


async def test_one_who_comes_later_or_asks_again_hears_all_that_is_there_by_then() -> None:
    harness = Harness(simulated(blocks=16))
    feed, early, late = BlockFeed(harness.loop), Follower(), Follower()
    async with running(harness):
        feed.watch(early)
        await run(harness, generation(0))
        feed.watch(late)
        await until(lambda: late.known)
        await run(harness, generation(1), generation(2), generation(3))
        early.known = {b"wrong"}
        feed.watch(early)
        await until(lambda: early.known == late.known == findable(harness))


async def test_a_change_just_before_another_watcher_begins_is_told_to_those_before_it() -> None:
    harness = Harness(simulated())
    feed, early, late = BlockFeed(harness.loop), Follower(), Follower()
    feed.watch(early)
    harness.add(generation(0))
    while not harness.loop.scheduler.idle:
        harness.loop.step()
    await until(lambda: early.known == findable(harness))
    assert early.known
    harness.loop.command(flushing(harness))
    feed.watch(late)
    harness.loop.step()
    await until(lambda: late.known == set())
    assert early.known == set()


async def test_one_that_has_left_hears_nothing_and_without_watchers_nothing_is_recorded() -> None:
    harness = Harness(simulated())
    feed, gone, staying = BlockFeed(harness.loop), Follower(), Follower()
    async with running(harness):
        feed.watch(gone)
        feed.watch(staying)
        await until(lambda: gone.known is not None and staying.known is not None)
        feed.unwatch(gone)
        await run(harness, generation(0))
        await until(lambda: staying.known == findable(harness))
        assert gone.changes == 0
        feed.unwatch(staying)
        feed.watch(gone)
        feed.unwatch(gone)
        await run(harness, generation(1))
    assert gone.changes == 0
    assert harness.parts.pool._changes is None


async def test_a_generation_that_may_not_write_the_cache_tells_nothing() -> None:
    harness = Harness(simulated())
    feed, follower = BlockFeed(harness.loop), Follower()
    async with running(harness):
        feed.watch(follower)
        await run(harness, generation(0, writes=False))
        await run(harness, generation(1))
        await until(lambda: follower.known)
        assert follower.known == findable(harness)
    assert len(findable(harness)) == 6
