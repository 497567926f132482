"""Two thousand operations between an engine and its store, with faults of store and network.

A simulated engine draws its tokens from what its blocks hold: one wrong byte and they differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from services.engine.kv.cache_settings import CacheSettings, CacheType, DistributedSettings
from services.engine.kv.stores import breaker
from services.engine.kv.stores.redis_store import namespace
from services.engine.kv.tier import Skip, Tier
from services.shared.stream.events import CacheMiss
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.asked import ask
from tests.engine.harness import MODEL, Harness, simulated
from tests.engine.served import Served, served
from tests.faults.proxy import Proxy, proxy_to
from tests.redis_server import RedisServer, redis_server

SEED = 5
OPERATIONS, AT_A_TIME = 2000, 20
BLOCKS = 512

PROMPTS = [
    Generation(
        request_id=str(number),
        prompt_ids=[3 + (number * 31 + index * 7) % 900 for index in range(45)],
        sampling=Sampling(seed=number),
        stopping=Stopping(max_tokens=6, ignore_eos=True),
    )
    for number in range(30)
]


class Spoiler:
    """Does to records in a store what disks, bugs and other programs do."""

    def __init__(self, server: RedisServer, chance: random.Random) -> None:
        self._server = server
        self._chance = chance

    def flip(self) -> None:
        for key, record in self._some():
            at = self._chance.randrange(len(record))
            changed = bytes([record[at] ^ 1 << self._chance.randrange(8)])
            self._server.ask("SETRANGE", key, at, changed)

    def cut(self) -> None:
        for key, record in self._some():
            self._server.ask("SET", key, record[: self._chance.randrange(len(record))])

    def swap(self) -> None:
        taken = self._some()
        for (key, _), (_, record) in pairwise(taken):
            self._server.ask("SET", key, record)

    def lose(self) -> None:
        for key, _ in self._some():
            self._server.ask("DEL", key)

    def lose_all(self) -> None:
        self._server.ask("FLUSHALL")

    def _some(self) -> list[tuple[bytes, bytes]]:
        keys = sorted(self._server.ask("KEYS", namespace(MODEL.kv_layout_id) + b"*"))
        taken = self._chance.sample(keys, min(8, len(keys)))
        return [(key, self._server.ask("GET", key)) for key in taken]


def faults(proxy: Proxy, spoiler: Spoiler, chance: random.Random) -> list[Callable[[], None]]:
    """What happens before a round."""
    return [
        lambda: None,
        lambda: proxy.delay(chance.choice([0.001, 0.02, 0.2])),
        proxy.hold,
        proxy.refuse,
        lambda: proxy.flip(chance.choice([50, 400, 3000])),
        lambda: proxy.truncate(chance.randrange(3000)),
        spoiler.flip,
        spoiler.cut,
        spoiler.swap,
        spoiler.lose,
        spoiler.lose_all,
    ]


async def a_round(engine: Served, proxy: Proxy, chance: random.Random) -> list[list[int]]:
    """Prompts that all are looked for in the store first; now and then the connections end."""
    await engine.engine.flush_cache()
    taken = chance.sample(range(len(PROMPTS)), AT_A_TIME)
    asked = [ask(engine.engine, PROMPTS[number]) for number in taken]
    if chance.random() < 0.2:
        proxy.cut()
    for one in asked:
        await one.finished()
    expected = Harness(simulated(blocks=BLOCKS)).outputs([PROMPTS[number] for number in taken])
    assert [one.ids for one in asked] == expected
    return expected


async def test_no_fault_of_a_store_changes_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A store that is left alone for long would be asked too seldom to fail.
    monkeypatch.setattr(breaker, "FIRST_REST_S", 0.005)
    monkeypatch.setattr(breaker, "LONGEST_REST_S", 0.02)
    chance = random.Random(SEED)  # noqa: S311  # its numbers repeat
    with redis_server(tmp_path / "redis") as server, proxy_to(server.address) as proxy:
        cache = CacheSettings(
            type=CacheType.DISTRIBUTED,
            read_timeout_s=0.1,
            distributed=DistributedSettings(nodes=(proxy.address,), timeout_s=0.05),
        )
        choices = faults(proxy, Spoiler(server, chance), chance)
        async with served(simulated(blocks=BLOCKS), cache=cache) as engine:
            for number in range(OPERATIONS // AT_A_TIME):
                choices[number % len(choices)]()
                await a_round(engine, proxy, chance)
                proxy.restore()
            figures = engine.caches.figures[Tier.SERVICE]
            causes = {cause for cause, blocks in figures.misses.items() if blocks}
            named = {CacheMiss.ABSENT, CacheMiss.CHECKSUM, CacheMiss.TIMEOUT, CacheMiss.UNREACHABLE}
            assert causes >= named
            assert figures.hit_blocks > 0
            assert figures.written_blocks > 0
            assert figures.skips[Skip.FAILED] > 0
