"""One world: engines, a network, a router and clients, from one seed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from random import Random

from services.shared.errors import Code
from tests.simulation.asked import Rules
from tests.simulation.clients import Client, Surroundings
from tests.simulation.fairness import Fairness
from tests.simulation.faults.catalogue import TRANSFERS
from tests.simulation.front import Front
from tests.simulation.history import History
from tests.simulation.judge import Judge, Violation
from tests.simulation.logs import logged_bugs
from tests.simulation.machines import Machines
from tests.simulation.nemesis import Nemesis
from tests.simulation.parameters import (
    Backlog,
    Mix,
    WorldParameters,
)
from tests.simulation.plain_requests import PlainRequests
from tests.simulation.requests import Requests
from tests.simulation.versions import VERSIONS
from tests.simulation.virtual_time import VirtualLoop, clocks_of

STARTED_S = 4.0
"""By then all engines are ready, and known to be."""

QUIET_S = 60.0
PATIENCE_S = 30.0
"""How long clients go on when faults have ended."""

CALM_FAILURES = frozenset({Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED})
FAILURES = CALM_FAILURES | {Code.UNAVAILABLE, Code.DATA_LOSS}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a world; `faults` are those it had."""

    seed: int
    violation: Violation | None
    judge: Judge
    history: History
    faults: list[str]


class World:
    """Runs once.

    Args:
        without: names of faults that are left out.
    """

    def __init__(self, parameters: WorldParameters, without: Iterable[str] = ()) -> None:
        self.parameters = parameters
        self.loop = VirtualLoop()
        self.history = History(self.loop.time)
        self.judge = Judge(self.loop.time, self.history)
        self.machines = Machines(self.loop, self.judge, parameters, self.random)
        self.nemesis = Nemesis(self, without)
        self.clients = self._clients()
        self._tasks: list[asyncio.Task[None]] = []

    def random(self, purpose: str) -> Random:
        """Numbers of one purpose, which no other purpose disturbs."""
        return Random(f"{purpose} {self.parameters.seed}")

    def run(self) -> Verdict:
        self.judge.stop = self.loop.stop
        self.loop.set_exception_handler(self._crashed)
        with clocks_of(self.loop), logged_bugs(self.judge):
            task = self.loop.create_task(self._live())
            self.loop.run_until(task)
        with clocks_of(self.loop):
            self.loop.end_tasks()
        self.loop.close()
        violation, faults = self.judge.violation, self.nemesis.names
        return Verdict(self.parameters.seed, violation, self.judge, self.history, faults)

    @property
    def front(self) -> Front:
        """Where clients ask."""
        return self.machines.edge

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Something that takes a while."""
        self._tasks.append(self.loop.create_task(work))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _live(self) -> None:
        self.machines.start()
        await asyncio.sleep(STARTED_S)
        began = self.loop.time()
        for client in self.clients:
            client.begin()
        self.nemesis.begin()
        await asyncio.sleep(self.parameters.duration_s)
        self.nemesis.end()
        ended = self.loop.time()
        for client in self.clients:
            client.pause()
        await asyncio.sleep(PATIENCE_S)
        for client in self.clients:
            client.stop()
        await asyncio.sleep(QUIET_S)
        self._check_fairness(began, ended)
        self._check_ends()
        await self.machines.end()

    def _check_fairness(self, began: float, ended: float) -> None:
        backlog, life = self.parameters.requests, self.front.life
        if isinstance(backlog, Backlog) and life is not None:
            fairness = Fairness(backlog, life.router.weights, began, self.judge)
            fairness.check(self.clients, life.legs, ended)

    def _check_ends(self) -> None:
        for client in self.clients:
            for asked in client.asked:
                if not asked.is_over:
                    name = asked.generation.request_id
                    self.judge.broken("every generation ends", f"{name} has no end")

    def _clients(self) -> list[Client]:
        around = Surroundings(
            loop=self.loop,
            judge=self.judge,
            rules=Rules(
                context_length=self.parameters.context_length,
                versions=VERSIONS,
                failures=self._failures(),
            ),
            requests=self._requests(),
            submit=self.front.submit,
        )
        return [
            Client(f"client-{number}", client, self.random(f"client {number}"), around)
            for number, client in enumerate(self.parameters.clients)
        ]

    def _requests(self) -> Requests | PlainRequests:
        match self.parameters.requests:
            case Mix(max_tokens=max_tokens):
                context_length = self.parameters.context_length
                return Requests(self.random("prompts"), context_length, max_tokens)
            case Backlog() as backlog:
                return PlainRequests(backlog)

    def _failures(self) -> frozenset[Code]:
        """Those that callers must be ready for."""
        if TRANSFERS.keys() >= {*self.nemesis.names} and self.parameters.has_outputs:
            return CALM_FAILURES
        if "another model" in self.nemesis.names:
            return FAILURES | {Code.NOT_FOUND}
        return FAILURES

    def _crashed(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.judge.broken("no bug", f"{context['message']}: {error!r}")
