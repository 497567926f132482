"""The engines and routers of a world, and what holds of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

from tests.simulation.assembly import Around, engine_parts, identity
from tests.simulation.cluster import ClusterHost
from tests.simulation.engine import Process
from tests.simulation.engine_host import EngineHost
from tests.simulation.engine_invariants import check_blocks, check_idle
from tests.simulation.front import Front, Life
from tests.simulation.invariants import RouterInvariants
from tests.simulation.judge import Judge
from tests.simulation.kv_wires import KvWires, Lender
from tests.simulation.network import Line
from tests.simulation.parameters import EngineParameters, WorldParameters
from tests.simulation.virtual_time import VirtualLoop

IDLE_S = 5.0
"""An engine ends what it was asked for within this."""

Machine = EngineHost | ClusterHost


class Machines:
    """Engines behind a router, some of them behind routers that are its replicas.

    Attributes:
        edge: the router that clients ask.
        fronts: of all routers, the edge first.
        hosts: of all engines.
        reached: what is behind each router.
        wires: between the engines.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        judge: Judge,
        parameters: WorldParameters,
        random: Callable[[str], Random],
    ) -> None:
        self._loop = loop
        self._judge = judge
        self._parameters = parameters
        self._random = random
        self._invariants: dict[str, RouterInvariants] = {}
        self._lives = 0
        self.hosts: list[EngineHost] = []
        self.edge = Front("edge", self._begin)
        self.fronts = [self.edge]
        self.reached: dict[str, list[Machine]] = {self.edge.name: []}
        self.wires = KvWires(
            loop, random("kv"), parameters.delay_s, self._lender, self._is_reachable
        )

    def start(self) -> None:
        """All processes begin."""
        for _ in range(self._parameters.clusters):
            self._add_cluster()
        if self._parameters.is_looped:
            self._reach(self.edge, self.fronts[-1])
        for number, parameters in enumerate(self._parameters.engines):
            self.add_engine(parameters, self.fronts[number % len(self.fronts)])
        for front in reversed(self.fronts):
            front.start()

    def add_engine(self, parameters: EngineParameters, front: Front) -> None:
        """A new engine, which the router knows from now on."""
        name = f"engine-{len(self.hosts)}:1"
        random = self._random(name)

        def start(version: str) -> Process:
            wrong = partial(self._judge.broken, "blocks hold what is theirs")
            around = Around(random, wrong, self.wires)
            parts = partial(engine_parts, parameters, version, around)
            process = Process(self._loop, parameters, parts)
            process.on_step = partial(self._stepped, host)
            return process

        served = identity(parameters, parameters.version)
        host = EngineHost(name, self._line(name), parameters, served, start)
        self.hosts.append(host)
        self.reached[front.name].append(host)
        host.start()
        if front.life is not None:
            front.life.meet(host)

    def replicas(self) -> list[Machine]:
        """All that some router reaches."""
        return [host for reached in self.reached.values() for host in reached]

    def check(self) -> None:
        """After each step."""
        for front in self.fronts:
            if front.life is not None:
                self._invariants[front.name].check()

    async def end(self) -> None:
        """Takes all apart; each part must have nothing left when what used it is gone."""
        self.check()
        for front in self.fronts:
            if front.life is not None:
                front.life.router.cease()
        await asyncio.sleep(IDLE_S)
        for front in self.fronts:
            self._check_rest(front)
        for front in self.fronts:
            front.crash()
        await asyncio.sleep(IDLE_S)
        for host in self.hosts:
            check_blocks(host, self._judge)
            check_idle(host, self._judge)
            host.kill()
        await asyncio.sleep(IDLE_S)
        if timers := self._loop.timers():
            self._judge.broken("nothing is left", f"{len(timers)} timers, as {timers[0]}")

    def host(self, name: str) -> EngineHost | None:
        """Where the engine of a name runs; None where nobody is called so."""
        return next((host for host in self.hosts if host.name == name), None)

    def _lender(self, name: str) -> Lender | None:
        host = self.host(name)
        return None if host is None else host.caches

    def _is_reachable(self, name: str) -> bool:
        host = self.host(name)
        return host is None or host.line.is_open

    def _check_rest(self, front: Front) -> None:
        if front.life is None:
            self._judge.broken("nothing is left", f"there is no router {front.name}")
            return
        invariants = self._invariants[front.name]
        invariants.check_rest()
        for host in self.reached[front.name]:
            if isinstance(host, EngineHost):
                invariants.check_known_blocks(host)

    def _begin(self, front: Front) -> Life:
        """A router's life begins; it finds what is there."""
        self._lives += 1
        random = self._random(f"router {self._lives}")
        life = Life(front.name, self._loop, random, self._judge, self._parameters.rules)
        invariants = self._invariants[front.name] = RouterInvariants(life, self._judge)
        life.on_change = invariants.check
        for host in self.reached[front.name]:
            life.meet(host)
        return life

    def _add_cluster(self) -> None:
        front = Front(f"cluster-{len(self.fronts)}", self._begin)
        self.fronts.append(front)
        self.reached[front.name] = []
        self._reach(front, self.edge)

    def _reach(self, front: Front, by: Front) -> None:
        """One router is a replica of another."""
        self.reached[by.name].append(ClusterHost(front.name, self._line(front.name), front))

    def _line(self, name: str) -> Line:
        return Line(self._loop, self._random(f"line {name}"), self._parameters.delay_s)

    def _stepped(self, host: EngineHost) -> None:
        check_blocks(host, self._judge)
        self.check()
