"""A token source whose tokens come from the replicas of a fleet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from services.router.admission.admission import Admission
from services.router.clock import Clock
from services.router.fleet.fleet import Fleet
from services.router.relay.figures import RelayFigures
from services.router.relay.outcome import Journal
from services.router.relay.relayed import Relayed
from services.router.relay.retry_budget import RetryBudget
from services.router.relay.surroundings import Surroundings
from services.router.relay.tenant_use import TenantUse, tenant_uses
from services.router.total_load import total_load
from services.shared.errors import Code, Unavailable
from services.shared.stream.events import Cancel, Failed
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import Submission

LEAVING = Failed(code=Code.UNAVAILABLE, message="the router is leaving", retryable=True)


class Relay:
    """Takes generations until it drains and knows those that run.

    Args:
        fleet: where generations are sent.
        admission: gives them places there.
        clock: for their deadlines.
        journal: keeps a record of each.
        on_leave: called when none should come any more.
        budget: of continuations after failures.

    Attributes:
        draining: none should come any more; those on their way are taken until `drain`.
        figures: of all generations since the start.
    """

    def __init__(
        self,
        fleet: Fleet,
        admission: Admission,
        clock: Clock,
        journal: Journal,
        on_leave: Callable[[], None] = lambda: None,
        *,
        budget: RetryBudget | None = None,
    ) -> None:
        self.figures = RelayFigures()
        self._fleet = fleet
        self._on_leave = on_leave
        self._admission = admission
        self._around = Surroundings(
            fleet=fleet,
            admission=admission,
            clock=clock,
            journal=journal,
            budget=budget or RetryBudget(),
            figures=self.figures,
        )
        self._running: dict[Relayed, None] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False
        self._is_closed = False

    def submit(self, submission: Submission) -> Cancel:
        self.figures.started += 1
        if self._is_closed:
            self.figures.fail(Code.UNAVAILABLE, had_place=False)
            raise Unavailable("the router is draining and takes no generation")
        relayed = Relayed(submission, self._around, self._forget)
        self._running[relayed] = None
        self._idle.clear()
        relayed.start()
        return relayed.cancel

    @property
    def running(self) -> int:
        """Generations that have not ended."""
        return len(self._running)

    def placed(self) -> int:
        """Of these, those that a replica has."""
        return sum(1 for relayed in self._running if relayed.replica is not None)

    def tenants(self) -> list[TenantUse]:
        """Whose generations have not ended, the one with the most first."""
        return tenant_uses(self._running)

    def load(self) -> Load:
        """The sum over the fleet and what waits before it; STARTING while no replica is ready."""
        if self.draining:
            state = ReplicaState.DRAINING
        else:
            state = ReplicaState.READY if self._fleet.ready() else ReplicaState.STARTING
        total = total_load(state, self._fleet.loads(), self._admission.load())
        return replace(
            total, routers=self._fleet.routers(), description_revision=self._fleet.revision
        )

    def leave(self) -> None:
        """Tells callers that nothing new should come; what comes all the same is taken."""
        self.draining = True
        self._on_leave()

    async def drain(self, timeout_s: float | None = None) -> None:
        """Takes no generation any more; returns when the last one has ended.

        What still runs after `timeout_s` seconds fails, to be continued through another router.
        """
        self._is_closed = True
        self.leave()
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            # Those that wait first: they would get the places of the others.
            for relayed in sorted(self._running, key=lambda one: one.replica is not None):
                relayed.break_off(LEAVING)

    def evacuate(self, name: str) -> None:
        """Moves the generations of a replica to others, as far and as soon as these have places."""
        for relayed in list(self._running):
            if relayed.replica == name:
                relayed.move()

    def _forget(self, relayed: Relayed) -> None:
        self._running.pop(relayed, None)
        if not self._running:
            self._idle.set()
