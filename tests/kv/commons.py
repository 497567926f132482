"""One fleet in which a block can be brought to each tier, and to no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tokenway.engine.v1.engine_pb2 import DescribeResponse
from tokenway.router.v1.router_pb2 import ExplainRequest
from tokenway.router.v1.router_pb2_grpc import RouterServiceStub

from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    DistributedSettings,
    EmbeddedSettings,
    Sharing,
)
from services.engine.kv.store import Store
from services.engine.kv.stores.opening import open_store
from services.shared.channel import open_channel
from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.integration.stack import Launcher
from tests.kv.books import flush, holds
from tests.kv.caller import Caller
from tests.kv.fleet import LENIENT, cached, light
from tests.kv.prompts import prompt
from tests.kv.token_door import Told, request_of, token_door
from tests.redis_server import redis_server

POOL_BLOCKS = 32
PROMPT_TOKENS = 100
BLOCK_BYTES = 64

EMBEDDED, OTHER_EMBEDDED, REDIS = range(3)
"""The engines: two with one file, and one with a server."""


@dataclass(kw_only=True)
class Commons:
    """Args: stores: of the first engine and of the last, as another reader sees them."""

    cluster: Cluster
    stores: dict[int, Store]
    described: DescribeResponse
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def new_prompt(self) -> list[int]:
        """One that nobody has asked yet."""
        return prompt(next(self._numbers), PROMPT_TOKENS)

    def address(self, at: int) -> str:
        return self.cluster.engines[at].address

    async def ask(self, at: int, caller: Caller, prompt: Sequence[int]) -> Told:
        """Through the router, at that engine."""
        await self.cluster.lean_on(at)
        async with token_door(self.cluster.router.address) as door:
            return await door.ask(request_of(prompt, caller=caller))

    async def ask_with_hint(self, caller: Caller, prompt: Sequence[int]) -> Told:
        """At the second engine, which is told that the first has the prompt's blocks."""
        async with token_door(self.address(OTHER_EMBEDDED)) as door:
            return await door.ask(request_of(prompt, caller=caller, peer=self.address(EMBEDDED)))

    async def is_known(self, at: int, caller: Caller, prompt: Sequence[int]) -> None:
        """Returns when the router has heard that an engine has the prompt's blocks."""
        request = ExplainRequest(request=request_of(prompt, caller=caller))
        usable = len(caller.addresses(prompt, self.described)) * self.described.block_size

        async def heard() -> bool:
            async with open_channel(self.cluster.router.address) as channel:
                options = (await RouterServiceStub(channel).Explain(request)).options
            found = {option.address: option.cached_tokens for option in options}
            return found[self.address(at)] == usable

        await holds(heard)

    def stored(self, at: int, caller: Caller, prompt: Sequence[int]) -> int:
        """How many of the prompt's blocks the store of that engine has."""
        return sum(self.stores[at].present(caller.addresses(prompt, self.described)))

    async def displace(self, at: int, caller: Caller) -> None:
        """Other prompts of the caller take all blocks of an engine's pool; others' would not.

        Each tenant keeps a share of it.
        """
        for _ in range(POOL_BLOCKS * 16 // PROMPT_TOKENS + 1):
            await self.ask(at, caller, self.new_prompt())

    async def forget(self, at: int, caller: Caller, prompt: Sequence[int]) -> None:
        """The engine has nothing more, and its store has the prompt."""
        usable = len(caller.addresses(prompt, self.described))

        async def is_stored() -> bool:
            return self.stored(at, caller, prompt) == usable

        await holds(is_stored)
        await flush(self.address(at))


@contextmanager
def commons_of(launcher: Launcher, model: ModelFolder, sharing: Sharing) -> Iterator[Commons]:
    """A fleet that is ready and ends with the block."""
    folder = launcher.folder
    with redis_server(folder / "redis") as server:
        embedded = CacheSettings(
            type=CacheType.EMBEDDED, embedded=EmbeddedSettings(path=folder / "kv")
        )
        distributed = CacheSettings(
            type=CacheType.DISTRIBUTED, distributed=DistributedSettings(nodes=(server.address,))
        )
        common = {**LENIENT, "sharing": sharing.value, "host_bytes": "1MiB"}
        file = {**common, "type": "embedded", "embedded": {"path": str(embedded.embedded.path)}}
        nodes = {**LENIENT["distributed"], "nodes": [server.address]}
        redis = {**common, "type": "distributed", "distributed": nodes}
        engines = [cached(light(model, POOL_BLOCKS), **cache) for cache in (file, file, redis)]
        with cluster_of(launcher, engines, model) as cluster:
            described = cluster.engines[EMBEDDED].service.describe()
            stores: dict[int, Store] = {}
            for at, settings in ((EMBEDDED, embedded), (REDIS, distributed)):
                store = open_store(settings, described.kv_layout_id, BLOCK_BYTES)
                assert store is not None
                stores[at] = store
            yield Commons(cluster=cluster, stores=stores, described=described)
            for store in stores.values():
                store.close()
