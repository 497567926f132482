"""The processes of one machine: started in order, kept alive, stopped in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from services.launcher.child import Child, Ended, Launch
from services.launcher.health_probe import answering, serving
from services.launcher.plan import Plan
from services.launcher.start_failed import start_failed
from services.launcher.waits import Waits
from services.shared.tasks import Tasks
from services.shared.tls.identity import STREAM_NAME

T = TypeVar("T")
Check = Callable[[], Coroutine[Any, Any, None]]

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STABLE_S = 60.0
"""A process that lived this long is started again after the first pause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Addresses:
    """Where the services listen, as `host:port`; `metrics` by service, `url` is of `http`."""

    url: str
    http: str
    grpc: str
    router: str
    engines: tuple[str, ...]
    metrics: Mapping[str, tuple[str, ...]]


class Fleet:
    """Owns what it starts.

    Args:
        plan: what to start.
        say: tells the operator one line.
    """

    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._log_dir = plan.options.log_dir
        self._say = say
        self._children: list[Child] = []

    async def start(self, waits: Waits) -> Addresses:
        """Starts all and returns when all can serve. Raises StartFailed."""
        count = self._plan.options.engines
        engines = [await self._start(self._plan.engine(index)) for index in range(count)]
        doors = await _together(*(self._doors(engine, waits) for engine in engines))
        engine_doors = [door["grpc"] for door in doors]
        router = await self._start(self._plan.router(engine_doors))
        router_doors = await self._doors(router, waits)
        router_door = router_doors["grpc"]
        codec = await self._start(self._plan.codec(router_door))
        codec_doors = await self._doors(codec, waits)
        addresses = Addresses(
            url=f"{self._plan.scheme}://{codec_doors['http']}",
            http=codec_doors["http"],
            grpc=codec_doors["grpc"],
            router=router_door,
            engines=tuple(engine_doors),
            metrics={
                "codec": (codec_doors["metrics"],),
                "router": (router_doors["metrics"],),
                "engine": tuple(door["metrics"] for door in doors),
            },
        )
        ready_url = f"{addresses.url}{self._plan.readiness_path()}"
        dial = self._plan.mesh.calling(STREAM_NAME).dial
        checks = [partial(serving, address, dial=dial) for address in (*engine_doors, router_door)]
        checks.append(partial(answering, ready_url))
        pairs = zip(self._children, checks, strict=True)
        await _together(*(self._ready(child, check, waits) for child, check in pairs))
        return addresses

    @property
    def children(self) -> Sequence[Child]:
        """As they are now."""
        return self._children

    async def keep(self, changed: Callable[[], None]) -> None:
        """Starts again what dies, until cancelled.

        Args: changed: called when a process has taken the place of one that died.
        """
        crashed: asyncio.Queue[Exception] = asyncio.Queue()
        async with Tasks(lambda _, error: crashed.put_nowait(error)) as tasks:
            for index, child in enumerate(self._children):
                tasks.start(f"keep {child.launch.name}", self._keep(index, changed))
            raise await crashed.get()

    async def stop(self) -> None:
        """Stops all, those that others depend on last; what will not end is ended."""
        try:
            for service in ("codec", "router", "engine"):
                async with asyncio.TaskGroup() as group:
                    for child in self._children:
                        if child.launch.service == service:
                            group.create_task(child.stop(self._plan.options.drain_s))
        finally:
            for child in self._children:
                child.kill()

    async def _start(self, launch: Launch) -> Child:
        child = await Child.start(launch, self._log_dir)
        self._children.append(child)
        return child

    async def _doors(self, child: Child, waits: Waits) -> Mapping[str, str]:
        name = child.launch.name
        try:
            async with waits.wait(f"{name} starts"):
                doors = await child.doors()
        except Ended as ended:
            raise start_failed(name, str(ended), child.log) from None
        child.launch = child.launch.at(doors)
        return doors

    async def _ready(self, child: Child, check: Check, waits: Waits) -> None:
        try:
            async with waits.wait(f"{child.launch.name} gets ready"):
                await child.unless_ended(check())
        except Ended as ended:
            raise start_failed(child.launch.name, str(ended), child.log) from None

    async def _keep(self, index: int, changed: Callable[[], None]) -> None:
        pause_s = FIRST_PAUSE_S / 2
        while True:
            child = self._children[index]
            began = time.monotonic()
            cause = await child.ended()
            lived_s = time.monotonic() - began
            pause_s = FIRST_PAUSE_S if lived_s >= STABLE_S else min(pause_s * 2, LONGEST_PAUSE_S)
            self._say(f"{child.launch.name} {_ended(cause)}; it starts again in {pause_s:g} s")
            await asyncio.sleep(pause_s)
            self._children[index] = await Child.start(child.launch, self._log_dir)
            with suppress(Ended):  # then the next round says so
                await self._children[index].doors()
                changed()
                self._say(f"{child.launch.name} runs again")


async def _together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """All results; the first error ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in work]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _ended(cause: str) -> str:
    return cause if cause.startswith(("was ended", "ended")) else f"ended: {cause}"
