"""How every service leaves: it says so, takes what still comes for a while, and ends what runs."""

from __future__ import annotations

from typing import Protocol

from services.shared.health import Health, Readiness
from services.shared.stop import Stop


class DrainLimits(Protocol):
    """Seconds; both may be 0."""

    @property
    def settle_s(self) -> float: ...

    @property
    def drain_timeout_s(self) -> float: ...


class Drainable(Protocol):
    """What takes work."""

    def leave(self) -> None:
        """Tells whoever asks that nothing new should come; what comes all the same is taken."""

    async def drain(self, timeout_s: float | None) -> None:
        """Takes nothing any more, and returns when nothing runs.

        What still runs after `timeout_s` seconds is broken off.
        """


async def drained(work: Drainable, health: Health, stop: Stop, limits: DrainLimits) -> None:
    """Waits until the process is asked to stop, and returns when its work has ended.

    Senders learn late that a service leaves: a load balancer by its next probe, a router by the
    next load. So nothing is refused in the first `settle_s` seconds.
    """
    await stop.asked()
    work.leave()
    await health.set(Readiness.DRAINING)
    await stop.settled(limits.settle_s)
    await work.drain(limits.drain_timeout_s)
