"""The cache goes off and on under load, and no request fails."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.integration.stack import Launcher, Stack
from tests.kv.books import (
    PEER,
    SERVICE,
    at_rest,
    hits,
    holds,
    stats_of,
    switch,
    tier_of,
)
from tests.kv.crowd import crowd_at, known_by
from tests.kv.fleet import cached, light

TIMES = 100
PROMPTS, PROMPT_TOKENS, TOKENS = 24, 100, 8
POOL_BLOCKS = 48
"""Less than the prompts have."""

APART = {"prefill": {"threshold_tokens": 64, "peer_tokens": 16}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Switched:
    """An engine for prompts and two for outputs, with one file, and what they must answer."""

    cluster: Cluster
    known: dict[int, Sequence[int]]
    folder: Path

    @property
    def addresses(self) -> list[str]:
        return [engine.address for engine in self.cluster.engines]

    async def used(self) -> list[tuple[int, ...]]:
        """What was read and written beyond the engines' own memory, at each of them."""
        tiers = [
            await tier_of(address, tier) for address in self.addresses for tier in (PEER, SERVICE)
        ]
        return [(one.hit_blocks, one.read_bytes, one.written_blocks) for one in tiers]

    async def in_use(self) -> None:
        """Returns when blocks have come from the file, and from one engine to each other."""
        before = await self._hits()

        async def is_used() -> bool:
            return all(now > then for now, then in zip(await self._hits(), before, strict=True))

        await holds(is_used)

    async def _hits(self) -> list[int]:
        prefill, *decodes = self.addresses
        return [await hits(prefill, SERVICE), *[await hits(one, PEER) for one in decodes]]

    async def off(self, at: int) -> bool:
        return not (await stats_of(self.addresses[at])).enabled


@pytest.fixture(scope="module")
def switched(
    tmp_path_factory: pytest.TempPathFactory, model_folder: ModelFolder, simulated_stack: Stack
) -> Iterator[Switched]:
    folder = tmp_path_factory.mktemp("switched")
    known = asyncio.run(known_by(simulated_stack.router.grpc, PROMPTS, PROMPT_TOKENS, TOKENS))
    file = {"path": str(folder / "kv")}
    engines = [
        cached(light(model_folder, POOL_BLOCKS, role=role), type="embedded", embedded=file)
        for role in ("prefill", "decode", "decode")
    ]
    launcher = Launcher(folder=folder, environ={})
    with cluster_of(launcher, engines, model_folder, service=APART) as cluster:
        yield Switched(cluster=cluster, known=known, folder=folder)


async def test_off_and_on_a_hundred_times_under_load_fails_no_request(switched: Switched) -> None:
    router = switched.cluster.router.address
    async with crowd_at(router, switched.known, PROMPT_TOKENS) as crowd:
        await switched.in_use()
        for _ in range(TIMES):
            for enabled in (False, True):
                await switch(router, enabled=enabled)
                await crowd.more()
        await switch(router, enabled=False)
        before = await switched.used()
        await crowd.more(5 * PROMPTS)
        assert await switched.used() == before
        await switch(router, enabled=True)
        await switched.in_use()
    await at_rest(switched.addresses)


async def test_an_engine_that_restarts_while_the_cache_is_off_uses_none(
    switched: Switched,
) -> None:
    router = switched.cluster.router.address
    await switch(router, enabled=False)
    switched.cluster.engines[1].kill()
    await asyncio.to_thread(switched.cluster.engines[1].service.process.wait)
    await switched.cluster.revive()
    assert await switched.off(1)
    async with crowd_at(router, switched.known, PROMPT_TOKENS) as crowd:
        await crowd.more(5 * PROMPTS)
    await at_rest(switched.addresses)
    assert not any(sum(used) for used in (await switched.used())[2:4])
    await switch(router, enabled=True)
    assert not await switched.off(1)


async def test_the_settings_file_is_followed(switched: Switched) -> None:
    config = switched.folder / "engine2.yaml"
    settings = yaml.safe_load(config.read_text())
    for enabled in (False, True):
        settings["cache"]["enabled"] = enabled
        config.write_text(yaml.safe_dump(settings))

        async def is_followed(to: bool = enabled) -> bool:
            return await switched.off(2) != to

        await holds(is_followed)
    assert not await switched.off(1)
