"""What happens to an engine's process."""

from __future__ import annotations

from tests.simulation.engine_host import EngineHost
from tests.simulation.faults.fault import Fault

DRAIN_S = 2.0


class Kill(Fault):
    """It dies and is started again later, with nothing of what it had."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        host.kill()
        self.later(1.0, host.start)
        return True


class Restart(Fault):
    """It dies and a new one takes its place at once, before anyone has noticed."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        host.kill()
        host.start()
        return True


class Freeze(Fault):
    """It stops and goes on later, as by SIGSTOP; its connections stay."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        host.freeze()
        self.later(3.0, host.thaw)
        return True


class StuckLoop(Fault):
    """Its step loop stops; what else it does goes on."""

    def strike(self) -> bool:
        process = self.host().process
        if process is None:
            return False
        process.stuck = True
        self.later(3.0, process.go_on)
        return True


class Slow(Fault):
    """Each step takes ten times as long."""

    def strike(self) -> bool:
        process = self.host().process
        if process is None:
            return False
        process.slowness = 10.0

        def heal() -> None:
            process.slowness = 1.0

        self.later(2.0, heal)
        return True


class Drain(Fault):
    """It leaves as on SIGTERM: finishes what it can, hands over the rest, ends and starts again."""

    def strike(self) -> bool:
        host = self.host()
        process = host.process
        if process is None or process.leaving:
            return False
        process.leaving = True
        self.world.start(self._drain(host))
        return True

    async def _drain(self, host: EngineHost) -> None:
        process = host.process
        if process is None:
            return
        process.parts.engine.leave()
        await self.world.sleep(self.random.uniform(0, 1))
        await process.parts.engine.drain(self.random.uniform(0, DRAIN_S))
        process.drive()
        await self.world.sleep(0.5)
        if host.process is process:
            host.kill()
            self.later(0.5, host.start)
