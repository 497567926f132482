"""Prompts that one engine computes while another fetches them, and what may happen meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import Cluster, cluster_of
from tests.faults.engines import WATCHFUL
from tests.faults.listener import Listener
from tests.faults.mortal import Mortal
from tests.faults.proxy import proxy_to
from tests.integration.stack import Launcher, Settings
from tests.kv.asked import long_asked
from tests.kv.books import PEER, at_rest, hits, holds
from tests.kv.fleet import cached, light
from tests.kv.heard import Heard, client_of, heard_by
from tests.waiting import until

WORDS, TOKENS = 500, 24
PREFILL, DECODE, OTHER = range(3)

APART: Settings = {**WATCHFUL, "prefill": {"threshold_tokens": 256, "peer_tokens": 64}}
"""A router that does not wait for an engine that stands still, and finds these prompts long."""


@dataclass(kw_only=True)
class Transfers:
    """An engine for prompts and two for outputs, the first of which is asked.

    Args:
        undisturbed: what each request is answered by an engine that fetches nothing.

    Attributes:
        listeners: who asked in the last round.
    """

    cluster: Cluster
    undisturbed: Mapping[str, Heard]
    listeners: list[Listener] = field(default_factory=list, init=False)
    _rounds: int = field(default=0, init=False)
    _hits: int = field(default=0, init=False)

    def engine(self, at: int) -> Mortal:
        return self.cluster.engines[at]

    def address(self, at: int) -> str:
        return self.engine(at).address

    async def disturbed(self, fault: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """All is asked at once, and no answer shows what happens.

        Args: fault: begins when the engine for outputs has got all, and ends after the answers.
        """
        self._rounds += 1
        self._hits = await hits(self.address(DECODE), PEER)
        asked = long_asked(self.cluster.model, WORDS, TOKENS)
        self.listeners = [Listener(one, f"{self._rounds}.{at}") for at, one in enumerate(asked)]
        names = {listener.request_id for listener in self.listeners}
        await self.cluster.weigh([1, 1, 0])
        async with client_of(self.cluster.stack) as client, asyncio.TaskGroup() as group:
            tasks = [group.create_task(listener.hear(client)) for listener in self.listeners]
            await until(lambda: names <= self.engine(DECODE).received())
            await self.cluster.level()
            async with fault():
                answers = await asyncio.gather(*tasks)
        for listener, answer in zip(self.listeners, answers, strict=True):
            heard = heard_by(listener, answer)
            assert heard == self.undisturbed[listener.asked.name], listener.asked.name
        await self.cluster.revive()
        await at_rest(engine.address for engine in self.cluster.engines)

    async def amid(self) -> None:
        """Returns when blocks have come, and more are still computed."""

        async def comes() -> bool:
            return await hits(self.address(DECODE), PEER) > self._hits

        await holds(comes)
        described = await asyncio.to_thread(self.engine(PREFILL).service.describe)
        assert described.load.pending_prompt_tokens, "all blocks have come already"

    def continued(self) -> bool:
        """Whether the first answer of the last round came from more than one engine."""
        return min(self.cluster.attempts(self.listeners[0].request_id)) > 1


@contextmanager
def transfers_of(
    launcher: Launcher, model: ModelFolder, undisturbed: Mapping[str, Heard]
) -> Iterator[Transfers]:
    """Engines that compute nothing, the one for prompts slowly; ways to them that can be held."""
    slow, fast = ({"step_us": 10_000, "token_us": token_us} for token_us in (500, 50))
    engines = [
        cached(
            light(model, 1024, role=role, simulation=simulation),
            host_bytes="1MiB",
            peer={"patience_s": 3},
        )
        for role, simulation in (("prefill", slow), ("decode", fast), ("decode", fast))
    ]
    with cluster_of(launcher, engines, model, proxy_to, service=APART) as cluster:
        yield Transfers(cluster=cluster, undisturbed=undisturbed)
