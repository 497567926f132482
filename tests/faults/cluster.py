"""Services of which each can be killed and come back, and what they say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from services.shared.model_folder import ModelFolder
from tests.faults.mortal import Mortal
from tests.integration.stack import Launcher, Service, Settings, Stack, wait_until_ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Engines, a router and a codec, all ready once."""

    engines: tuple[Mortal, ...]
    router: Mortal
    codec: Service
    model: str

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

    def has(self, request_id: str) -> list[Mortal]:
        """The engines that were sent a request, by their logs."""
        received = {"message": "prompt received", "request_id": request_id}
        return [engine for engine in self.engines if engine.service.lines(**received)]

    def attempts(self, request_id: str) -> list[int]:
        """How many replicas each output of a request was sent to; none while it runs."""
        return [
            line["attempts"]
            for line in self.router.service.lines(message="generation ended")
            if line["request_id"].removesuffix("-0").removesuffix("-1") == request_id
        ]


@contextmanager
def cluster_of(
    launcher: Launcher, engines: Sequence[Settings], model: ModelFolder, **router: Any
) -> Iterator[Cluster]:
    """A cluster that is ready and ends with the block.

    Args:
        launcher: starts it.
        engines: the settings of each engine.
        model: the model of the codec.
        router: settings of the router beside its replicas.
    """
    with ExitStack() as running:

        def start(name: str, settings: Settings) -> Mortal:
            mortal = running.enter_context(closing(Mortal(launcher, name, settings)))
            mortal.start()
            return mortal

        started = tuple(start(f"engine{at}", settings) for at, settings in enumerate(engines))
        replicas = [engine.address for engine in started]
        routing = start("router", {"replicas": replicas, **router})
        codec: Settings = {
            "server": {"port": 0, "grpc_port": 0},
            "inference_engine": {"endpoint": routing.address},
            "executor": {"model_path": str(model.path)},
        }
        door = running.enter_context(launcher.running("codec", codec))
        cluster = Cluster(engines=started, router=routing, codec=door, model=model.name)
        wait_until_ready(cluster.stack)
        yield cluster
