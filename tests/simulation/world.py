"""One world: engines, a network, a router and clients, from one seed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from random import Random

from services.shared.errors import Code
from tests.simulation import invariants
from tests.simulation.asked import Rules
from tests.simulation.assembly import IDENTITY, engine_parts
from tests.simulation.clients import Client, Surroundings
from tests.simulation.engine import Host, Process
from tests.simulation.front import Front, Life
from tests.simulation.history import History
from tests.simulation.judge import Judge, Violation
from tests.simulation.logs import logged_bugs
from tests.simulation.nemesis import Nemesis
from tests.simulation.network import Line
from tests.simulation.parameters import EngineParameters, WorldParameters, world_of
from tests.simulation.requests import Requests
from tests.simulation.virtual_time import VirtualLoop, clocks_of

QUIET_S = 60.0
PATIENCE_S = 30.0
"""How long clients go on when faults have ended."""

CALM_FAILURES = frozenset({Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED})
FAILURES = CALM_FAILURES | {Code.UNAVAILABLE, Code.DATA_LOSS}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a world."""

    seed: int
    violation: Violation | None
    judge: Judge
    history: History


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
        self.front = Front()
        self.hosts: list[Host] = []
        self.identities = dict.fromkeys(
            (self._name(number) for number in range(len(parameters.engines))), IDENTITY
        )
        self.clients = self._clients()
        self.nemesis = Nemesis(self, without)
        self._lives = 0

    def random(self, purpose: str) -> Random:
        """Numbers of one purpose, which no other purpose disturbs."""
        return Random(f"{purpose} {self.parameters.seed}")

    def run(self) -> Verdict:
        self.judge.stop = self.loop.stop
        self.loop.set_exception_handler(self._crashed)
        with clocks_of(self.loop), logged_bugs(self.judge):
            task = self.loop.create_task(self._live())
            self.loop.run_until(task)
            self.loop.close()
        return Verdict(self.parameters.seed, self.judge.violation, self.judge, self.history)

    def check(self) -> None:
        """After each step."""
        if self.front.life is not None:
            invariants.check_router(self.front.life, self.judge)

    def start_router(self) -> None:
        """A new router takes the place of the one that ended."""
        self._lives += 1
        life = Life(self.loop, self.random(f"router {self._lives}"), self.judge)
        self.front.life = life
        for host in self.hosts:
            life.meet(host, partial(self.identities.__getitem__, host.name))

    async def _live(self) -> None:
        for number, parameters in enumerate(self.parameters.engines):
            self._add_host(self._name(number), parameters)
        self.start_router()
        for client in self.clients:
            client.begin(self.parameters.generations, self.parameters.think_s)
        self.nemesis.begin()
        await asyncio.sleep(self.parameters.duration_s)
        self.nemesis.end()
        await asyncio.sleep(PATIENCE_S)
        for client in self.clients:
            client.stop()
        await asyncio.sleep(QUIET_S)
        self._check_end()

    def _check_end(self) -> None:
        self.check()
        for host in self.hosts:
            invariants.check_engine(host, self.judge)
            invariants.check_idle(host, self.judge)
        if self.front.life is None:
            self.judge.broken("nothing is left", "there is no router")
        else:
            invariants.check_rest(self.front.life, self.judge)
        for client in self.clients:
            for asked in client.asked:
                if not asked.is_over:
                    name = asked.generation.request_id
                    self.judge.broken("every generation ends", f"{name} has no end")

    def _clients(self) -> list[Client]:
        parameters = self.parameters
        context_length = min(engine.context_length for engine in parameters.engines)
        random = self.random("clients")
        around = Surroundings(
            loop=self.loop,
            judge=self.judge,
            rules=Rules(
                context_length=context_length,
                failures=FAILURES,
            ),
            requests=Requests(random, context_length, parameters.max_tokens),
            submit=self.front.submit,
        )
        return [
            Client(
                f"client-{number}",
                random.choice(parameters.tenants).name,
                self.random(f"client {number}"),
                around,
            )
            for number in range(parameters.clients)
        ]

    def _add_host(self, name: str, parameters: EngineParameters) -> None:
        line = Line(self.loop, self.random(f"line {name}"), self.parameters.delay_s)
        random = self.random(f"engine {name}")

        def start() -> Process:
            wrong = partial(self.judge.broken, "blocks hold what is theirs")
            process = Process(self.loop, parameters, random, partial(engine_parts, wrong=wrong))
            process.on_step = partial(self._stepped, host)
            return process

        host = Host(name, line, parameters, start)
        self.hosts.append(host)
        host.start()

    def _stepped(self, host: Host) -> None:
        invariants.check_engine(host, self.judge)
        self.check()

    def _crashed(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        self.judge.broken("no bug", f"{context['message']}: {error!r}")

    @staticmethod
    def _name(number: int) -> str:
        return f"engine-{number}"


def run_world(seed: int, without: Iterable[str] = ()) -> Verdict:
    return World(world_of(seed), without).run()
