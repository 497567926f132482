"""One fleet of the real model in which every tier and every kind of store is to be found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tokenway.engine.v1.engine_pb2 import CacheTier

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.integration.stack import Launcher, Settings
from tests.kv.asked import long_asked
from tests.kv.books import PEER, at_rest, flush, hits, holds, switch, written
from tests.kv.fleet import LENIENT, cached, real
from tests.kv.heard import Heard, Round, ask_all, ask_together
from tests.redis_server import redis_cluster, redis_server, redis_servers

WORDS, TOKENS = 32, 8
SMALL_POOL = 12
"""Blocks: two prompts at most, so that each of four has given way when it comes again."""

LARGE_POOL = 128
SINGLE, CLUSTER, ERASURE, PREFILL, DECODE = range(5)
"""Engines with one server, and host memory; with a cluster of three; with six nodes of which two
may go; and one for prompts and one for outputs that have a file together."""

ROUTER: Settings = {"prefill": {"threshold_tokens": 32, "peer_tokens": 16}}
"""Hardly any prompt is too short for a way to another engine."""


@dataclass(kw_only=True)
class Proof:
    """Asks all, and sees which tier of which engine has given the blocks.

    Attributes:
        computed: what all must be answered: by an engine that used no cache.
    """

    cluster: Cluster
    computed: Round = field(init=False)

    async def begin(self) -> None:
        await switch(self.address(PREFILL), enabled=False)
        await self.cluster.lean_on(PREFILL)
        self.computed = await self.ask("computed")
        await switch(self.address(PREFILL), enabled=True)
        assert not any(self.computed.cached_tokens)

    @property
    def heard(self) -> dict[str, Heard]:
        return dict(self.computed.heard)

    def address(self, at: int) -> str:
        return self.cluster.engines[at].address

    async def ask(self, name: str) -> Round:
        """All, one after the other; rounds of one name share blocks."""
        asked = long_asked(self.cluster.model, WORDS, TOKENS)
        return await ask_all(self.cluster.stack, asked, name)

    async def computes(self, name: str, at: int) -> None:
        """Nothing is found anywhere."""
        await self.cluster.lean_on(at)
        told = await self.ask(name)
        assert told.heard == self.heard
        assert not any(told.cached_tokens)

    async def finds(self, name: str, at: int, tier: CacheTier.ValueType) -> None:
        """Everything is found in that tier, and nothing elsewhere."""
        before = await hits(self.address(at), tier)
        told = await self.ask(name)
        assert told.heard == self.heard
        assert told.cached_tokens == [16 * blocks for blocks in told.usable_blocks()]
        assert await hits(self.address(at), tier) - before == sum(told.usable_blocks())
        await self.at_rest()

    async def finds_at_another(self, name: str, at: int, other: int) -> None:
        """As each has been answered at one engine, another fetches it there."""
        for number, one in enumerate(long_asked(self.cluster.model, WORDS, TOKENS)):
            before = await hits(self.address(at), PEER)
            for engine in (other, at):
                await self.cluster.lean_on(engine)
                told = await ask_all(self.cluster.stack, [one], f"{name}{number}")
                assert told.heard[one.name] == self.heard[one.name]
            assert await hits(self.address(at), PEER) - before == sum(told.usable_blocks())
        await self.at_rest()

    async def leaves(self, at: int) -> None:
        """Returns when the blocks are in the engine's store; it has forgotten them then."""
        usable = sum(self.computed.usable_blocks())

        async def all_written() -> bool:
            return await written(self.address(at)) >= usable

        await holds(all_written)
        await flush(self.address(at))

    async def survives(self, name: str, victim: int, decode: int) -> None:
        """An engine dies while blocks go from the one for prompts to one for outputs."""
        engines = range(len(self.cluster.engines))
        await self.cluster.weigh([float(at in (PREFILL, decode)) for at in engines])
        asked = 2 * list(long_asked(self.cluster.model, WORDS, TOKENS))
        before = await hits(self.address(decode), PEER)
        came = 0

        async def kill() -> None:
            async def blocks_come() -> bool:
                nonlocal came
                came = await hits(self.address(decode), PEER) - before
                return came > 0

            await holds(blocks_come)
            self.cluster.engines[victim].kill()
            await asyncio.to_thread(self.cluster.engines[victim].service.process.wait)

        heard = await ask_together(self.cluster.stack, asked, name, kill())
        assert came < 2 * sum(self.computed.usable_blocks())
        assert heard == [self.heard[one.name] for one in asked]
        await self.at_rest()

    async def at_rest(self) -> None:
        """Returns when no engine that lives uses a block."""
        alive = [one for one in self.cluster.engines if one.service.process.poll() is None]
        await at_rest(engine.address for engine in alive)


@contextmanager
def proof_of(launcher: Launcher, model: ModelFolder) -> Iterator[Proof]:
    """The fleet, ready; it ends with the block."""
    folder = launcher.folder
    with ExitStack() as running:
        server = running.enter_context(redis_server(folder / "single"))
        cluster = running.enter_context(redis_cluster(folder / "cluster"))
        nodes = running.enter_context(redis_servers(folder / "erasure", 6))

        def distributed(spread: str, servers: list[Any], pool: int, **more: Any) -> Settings:
            store = {"nodes": [one.address for one in servers], "spread": spread}
            stored = {"type": "distributed", "distributed": {**LENIENT["distributed"], **store}}
            return cached(real(model, pool), **{**LENIENT, **stored, **more})

        file = {**LENIENT, "type": "embedded", "embedded": {"path": str(folder / "kv")}}
        engines = [
            distributed("single", [server], SMALL_POOL, host_bytes="64MiB"),
            distributed("cluster", cluster, SMALL_POOL),
            distributed("erasure", nodes, LARGE_POOL),
            cached(real(model, LARGE_POOL, role="prefill"), **file),
            cached(real(model, LARGE_POOL, role="decode"), **file),
        ]
        fleet = running.enter_context(cluster_of(launcher, engines, model, service=ROUTER))
        yield Proof(cluster=fleet)
