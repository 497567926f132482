"""Services of which each can be killed and come back, and what they say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from tokenway.router.v1.router_pb2 import SetWeightRequest
from tokenway.router.v1.router_pb2_grpc import RouterServiceStub

from services.shared.channel import open_channel
from services.shared.model_folder import ModelFolder
from tests.faults.mortal import Mortal, request_of
from tests.faults.proxy import Proxy
from tests.integration.stack import Launcher, Service, Settings, Stack, wait_until_ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Engines, a router and a codec, all ready once.

    Args:
        links: what stands between the router and each engine; none where they meet directly.
    """

    engines: tuple[Mortal, ...]
    router: Mortal
    codec: Service
    model: str
    links: tuple[Proxy, ...] = ()

    @property
    def stack(self) -> Stack:
        """As they are in this life."""
        return Stack(
            engines=tuple(engine.service for engine in self.engines),
            router=self.router.service,
            codec=self.codec,
            model=self.model,
        )

    async def ready(self) -> None:
        """Returns when the router knows every engine."""
        await asyncio.to_thread(wait_until_ready, self.stack)

    async def revive(self) -> None:
        """Starts again what is dead, and returns when the router knows it."""
        for mortal in (*self.engines, self.router):
            if mortal.service.process.poll() is not None:
                await asyncio.to_thread(mortal.start)
        await self.ready()

    def replica(self, at: int) -> str:
        """The address by which the router knows an engine."""
        return self.links[at].address if self.links else self.engines[at].address

    async def lean_on(self, at: int) -> None:
        """The router gives what is new to this engine alone, until `level`."""
        await self.weigh([float(other == at) for other in range(len(self.engines))])

    async def level(self) -> None:
        await self.weigh([1.0] * len(self.engines))

    async def weigh(self, weights: Sequence[float]) -> None:
        """The router gives each engine its share of what is new."""
        async with open_channel(self.router.address) as channel:
            operator = RouterServiceStub(channel)
            for at, weight in enumerate(weights):
                request = SetWeightRequest(address=self.replica(at), weight=weight)
                await operator.SetWeight(request)

    def attempts(self, request_id: str) -> list[int]:
        """How many replicas each output of a request was sent to; none while it runs."""
        ended = self.router.service.lines(message="generation ended")
        return [line["attempts"] for line in ended if request_of(line["request_id"]) == request_id]


def directly(_: str) -> AbstractContextManager[Proxy | None]:
    """Nothing stands between the router and an engine."""
    return nullcontext()


@contextmanager
def cluster_of(
    launcher: Launcher,
    engines: Sequence[Settings],
    model: ModelFolder,
    link: Callable[[str], AbstractContextManager[Proxy | None]] = directly,
    **router: Any,
) -> Iterator[Cluster]:
    """A cluster that is ready and ends with the block.

    Args:
        launcher: starts it.
        engines: the settings of each engine.
        model: the model of the codec.
        link: makes what stands between the router and an engine.
        router: settings of the router beside its replicas.
    """
    with ExitStack() as running:

        def mortal(name: str, settings: Settings) -> Mortal:
            return running.enter_context(closing(Mortal(launcher, name, settings)))

        started = [mortal(f"engine{at}", settings) for at, settings in enumerate(engines)]
        with ThreadPoolExecutor() as together:
            list(together.map(Mortal.start, started))
        between = [running.enter_context(link(engine.address)) for engine in started]
        links = tuple(proxy for proxy in between if proxy is not None)
        replicas = [way.address for way in links or started]
        routing = mortal("router", {"replicas": replicas, **router})
        routing.start()
        codec: Settings = {
            "server": {"port": 0, "grpc_port": 0},
            "inference_engine": {"endpoint": routing.address},
            "executor": {"model_path": str(model.path)},
        }
        door = running.enter_context(launcher.running("codec", codec))
        cluster = Cluster(
            engines=tuple(started), router=routing, codec=door, model=model.name, links=links
        )
        wait_until_ready(cluster.stack)
        yield cluster
