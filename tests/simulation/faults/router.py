"""What happens to the router itself."""

from __future__ import annotations

from tests.simulation.faults.fault import Fault
from tests.simulation.front import Life

HOUR_S = 3600.0


class RouterKill(Fault):
    """It dies; a new one finds the same engines."""

    def strike(self) -> bool:
        if self.world.front.life is None:
            return False
        self.world.front.crash()
        self.later(0.5, self.world.start_router)
        return True


class RouterDrain(Fault):
    """It leaves as on SIGTERM, with nothing left to do, and a new one takes its place."""

    def strike(self) -> bool:
        life = self.world.front.life
        if life is None or life.leaving:
            return False
        life.leaving = True
        self.world.start(self._drain(life))
        return True

    async def _drain(self, life: Life) -> None:
        await life.router.drain(self.random.uniform(0, 2))
        if self.world.front.life is not life:
            return
        self.world.judge.require(
            life.router.running == 0,
            "a drained router has nothing left",
            lambda: f"{life.router.running} run",
        )
        self.world.front.crash()
        self.later(0.5, self.world.start_router)


class ClockJump(Fault):
    """The wall clock is set an hour forward or back; nothing that is decided looks at it."""

    def strike(self) -> bool:
        self.world.loop.wall_offset_s += self.random.choice((-HOUR_S, HOUR_S))
        return True
