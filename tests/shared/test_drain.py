"""Every service leaves in the same order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from services.shared.drain import drained
from services.shared.health import Health, Readiness
from services.shared.stop import Stop
from tests.waiting import until


@dataclass(frozen=True, kw_only=True)
class Limits:
    settle_s: float
    drain_timeout_s: float = 7


@dataclass
class Work:
    """Notes what it is told."""

    health: Health
    told: list[object] = field(default_factory=list)

    def leave(self) -> None:
        self.told.append("leave")

    async def drain(self, timeout_s: float | None) -> None:
        self.told += [self.health.readiness, "drain", timeout_s]


async def test_a_service_says_that_it_leaves_before_it_refuses() -> None:
    health, stop = Health([]), Stop()
    work = Work(health)
    await health.set(Readiness.READY)
    ending = asyncio.ensure_future(drained(work, health, stop, Limits(settle_s=3600)))
    stop.ask()
    await until(lambda: health.readiness is Readiness.DRAINING)
    assert work.told == ["leave"]
    assert not ending.done()
    stop.ask()
    await ending
    assert work.told == ["leave", Readiness.DRAINING, "drain", 7]


async def test_the_settle_time_ends_by_itself() -> None:
    health, stop = Health([]), Stop()
    work = Work(health)
    stop.ask()
    await drained(work, health, stop, Limits(settle_s=0.001))
    assert work.told[-2:] == ["drain", 7]


async def test_what_cannot_go_on_does_not_settle() -> None:
    stop = Stop()
    stop.at_once()
    await stop.asked()
    await stop.settled(3600)
