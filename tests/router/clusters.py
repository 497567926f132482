"""Routers over replicas on loopback that are themselves replicas of a router, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from services.router.app import Router
from services.router.fleet.health import HealthRules
from services.router.settings import ServiceSettings
from services.shared.stream.client_session import ClientSession
from tests.router.fleet_of_servers import Servers, router_over, servers
from tests.router.servicer import ScriptedEngine

UNPROBED = ServiceSettings(health=HealthRules(probe_interval_s=3600))
"""For engines that play only when a test says so, and would not pass a probe."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Two engines and the router before them."""

    engines: tuple[ScriptedEngine, ScriptedEngine]
    servers: Servers
    router: Router
    session: ClientSession

    @property
    def address(self) -> str:
        return self.router.address

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            for engine in self.engines:
                engine.source.step()


@asynccontextmanager
async def cluster(
    engines: tuple[ScriptedEngine, ScriptedEngine] | None = None,
    *,
    plays: bool = True,
    service: ServiceSettings = UNPROBED,
) -> AsyncIterator[Cluster]:
    """One whose engines are ready."""
    engines = engines or (ScriptedEngine(), ScriptedEngine())
    async with (
        servers(*engines, plays=plays) as fleet,
        router_over(fleet.addresses, service=service) as (router, session),
    ):
        yield Cluster(engines=engines, servers=fleet, router=router, session=session)


def entry(
    *addresses: str, service: ServiceSettings = UNPROBED
) -> AbstractAsyncContextManager[tuple[Router, ClientSession]]:
    """A router over others, and a session to it."""
    return router_over(list(addresses), service=service)


@asynccontextmanager
async def clusters(
    count: int = 2, *, plays: bool = True, service: ServiceSettings = UNPROBED
) -> AsyncIterator[tuple[Router, ClientSession, Sequence[Cluster]]]:
    """A router over so many clusters, all of one setting, and a session to it."""
    async with AsyncExitStack() as stack:
        behind = [
            await stack.enter_async_context(cluster(plays=plays, service=service))
            for _ in range(count)
        ]
        above = entry(*(one.address for one in behind), service=service)
        router, session = await stack.enter_async_context(above)
        yield router, session, behind
