"""Two engines: what one computes the other fetches, with equal tokens whatever happens between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from services.engine.kv.cache_settings import CacheSettings, PeerSettings
from services.engine.kv.tier import Tier
from services.engine.scheduler import Limits
from services.shared.stream.events import CachedTokens, CacheMiss
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    RoutingHints,
    Sampling,
    Stopping,
)
from tests.engine.asked import Asked, ask
from tests.engine.harness import Harness, simulated
from tests.engine.served import Served, served
from tests.faults.proxy import Proxy, proxy_to
from tests.waiting import until

LENGTH, USABLE = 90, 22
"""Tokens of a prompt, and its blocks of four that can be found."""

SLOW = Limits(max_batch_size=4, token_budget=8)
CACHE = CacheSettings(peer=PeerSettings(patience_s=10, arrival_s=10))
HASTY = CacheSettings(peer=PeerSettings(patience_s=0.1, arrival_s=0))


def generation(number: int, peer: str | None = None, output: int = 8) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + (7 * index + number) % 900 for index in range(LENGTH)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=output, ignore_eos=True),
        cache=CacheControl(salt=b"salt"),
        routing=RoutingHints(prefill_peer=peer, prefill_computes=True),
    )


def prefill(number: int) -> Generation:
    """Computes a prompt and generates nothing."""
    return generation(number, output=0)


async def answered(engine: Served, asked: Generation) -> Asked:
    one = ask(engine.engine, asked)
    await one.finished()
    return one


def alone(*numbers: int) -> list[list[int]]:
    """What one engine without another answers."""
    return Harness(simulated()).outputs([generation(number) for number in numbers])


async def test_what_another_engine_has_is_fetched_from_it() -> None:
    async with served(simulated()) as first, served(simulated(), cache=CACHE) as second:
        await answered(first, prefill(1))
        one = await answered(second, generation(1, first.address))
        assert one.ids == alone(1)[0]
        assert one.accepted.cached_tokens == CachedTokens(peer=4 * USABLE)
        assert second.caches.figures[Tier.PEER].hit_blocks == USABLE


async def test_what_another_engine_computes_is_fetched_meanwhile() -> None:
    async with served(simulated(), SLOW) as first, served(simulated(), cache=CACHE) as second:
        two = asyncio.ensure_future(answered(second, generation(1, first.address)))
        await until(lambda: first.caches.lending._followers)
        await answered(first, prefill(1))
        one = await two
        assert one.ids == alone(1)[0]
        assert one.accepted.cached_tokens == CachedTokens(peer=4 * USABLE)


async def test_what_another_engine_is_fetching_itself_is_waited_for() -> None:
    punctual = CacheSettings(peer=PeerSettings(patience_s=10, arrival_s=0))
    async with (
        served(simulated()) as first,
        served(simulated(), cache=CACHE) as second,
        served(simulated(), cache=punctual) as third,
    ):
        there = asyncio.ensure_future(answered(second, generation(1, first.address, output=0)))
        await until(lambda: first.caches.lending._followers)
        here = asyncio.ensure_future(answered(third, generation(1, second.address)))
        await until(lambda: second.caches.lending._followers)
        await answered(first, prefill(1))
        await there
        one = await here
        assert one.ids == alone(1)[0]
        assert one.accepted.cached_tokens == CachedTokens(peer=4 * USABLE)


async def test_many_fetch_what_one_computes() -> None:
    """Each has room for all of them: the one would evict what the other still asks for."""
    giver, taker = simulated(blocks=128), simulated(blocks=128)
    async with served(giver, SLOW) as first, served(taker, cache=CACHE) as second:
        asked = [ask(second.engine, generation(number, first.address)) for number in range(3)]
        for number in range(3):
            await answered(first, prefill(number))
        for one in asked:
            await one.finished()
        assert [one.ids for one in asked] == alone(0, 1, 2)
        assert second.caches.figures[Tier.PEER].hit_blocks == 3 * USABLE


async def test_an_engine_that_is_not_there_costs_nothing_but_computing() -> None:
    async with served(simulated(), cache=CACHE) as engine:
        one = await answered(engine, generation(1, "127.0.0.1:1"))
        assert one.ids == alone(1)[0]
        assert one.accepted.cached_tokens.total == 0
        misses = engine.caches.figures[Tier.PEER].misses
        assert misses == {CacheMiss.UNREACHABLE: USABLE}


async def test_off_asks_nobody() -> None:
    async with served(simulated()) as first, served(simulated(), cache=CACHE) as second:
        await answered(first, prefill(1))
        await second.caches.set(enabled=False)
        one = await answered(second, generation(1, first.address))
        assert one.ids == alone(1)[0]
        assert one.accepted.cached_tokens.total == 0


FAULTS: dict[str, Callable[[Proxy], None]] = {
    "nothing": lambda _: None,
    "cut": Proxy.cut,
    "refuse": Proxy.refuse,
    "hold": Proxy.hold,
    "flip": lambda proxy: proxy.flip(300),
    "truncate": lambda proxy: proxy.truncate(200),
    "delay": lambda proxy: proxy.delay(0.002),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_no_token_is_wrong_whatever_happens_between(fault: str) -> None:
    draw = random.Random(fault)  # noqa: S311  # it repeats
    numbers = [draw.randrange(4) for _ in range(8)]
    expected = dict(zip(range(4), alone(*range(4)), strict=True))
    async with (
        served(simulated(), SLOW) as first,
        served(simulated(blocks=40), cache=HASTY) as second,
    ):
        with proxy_to(first.address) as proxy:
            for number in numbers:
                two = asyncio.ensure_future(answered(second, generation(number, proxy.address)))
                await asyncio.sleep(0)
                FAULTS[fault](proxy)
                await answered(first, prefill(number))
                assert (await two).ids == expected[number]
                proxy.restore()
        await until(lambda: not first.loop.scheduler.pool.leased)
        await until(lambda: not second.loop.scheduler.pool.leased)
