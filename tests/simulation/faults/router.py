"""What happens to the router itself."""

from __future__ import annotations

from tests.simulation.faults.fault import Fault
from tests.simulation.front import Front, Life

HOUR_S = 3600.0


class RouterKill(Fault):
    """It dies; a new one finds the same replicas."""

    def strike(self) -> bool:
        front = self.random.choice(self.world.machines.fronts)
        if front.life is None:
            return False
        front.crash()
        self.later(0.5, front.start)
        return True


class RouterDrain(Fault):
    """It leaves as on SIGTERM, with nothing left to do, and a new one takes its place."""

    def strike(self) -> bool:
        front = self.random.choice(self.world.machines.fronts)
        if front.life is None or front.life.leaving:
            return False
        front.life.leaving = True
        self.world.start(self._drain(front, front.life))
        return True

    async def _drain(self, front: Front, life: Life) -> None:
        await life.router.drain(self.random.choice((0.01, 0.1, 2)))
        if front.life is not life:
            return
        self.world.judge.require(
            life.router.running == 0,
            "a drained router has nothing left",
            lambda: f"{life.router.running} run",
        )
        front.crash()
        self.later(0.5, front.start)


class ClockJump(Fault):
    """The wall clock is set an hour forward or back; nothing that is decided looks at it."""

    def strike(self) -> bool:
        self.world.loop.wall_offset_s += self.random.choice((-HOUR_S, HOUR_S))
        return True
