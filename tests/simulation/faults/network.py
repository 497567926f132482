"""What happens between a router and its replicas."""

from __future__ import annotations

from tests.simulation.faults.fault import Fault


class Cut(Fault):
    """The connections to a host break off; its process lives."""

    def strike(self) -> bool:
        host = self.machine()
        host.cut()
        return bool(host.connections)


class Flap(Fault):
    """The connections to a host break off again and again."""

    def strike(self) -> bool:
        host = self.machine()
        for number in range(self.random.randint(3, 8)):
            self.world.loop.call_later(number * self.random.uniform(0.1, 0.6), host.cut)
        return True


class HalfOpen(Fault):
    """Nothing arrives in one direction, and neither side is told."""

    def strike(self) -> bool:
        host = self.machine()
        frames = self.random.random() < 0.5
        host.fall_silent(frames=frames, commands=not frames)
        self.later(4.0, host.speak)
        return True


class Delay(Fault):
    """Frames take long."""

    def strike(self) -> bool:
        line = self.machine().line
        line.extra_s = self.random.expovariate(2)

        def heal() -> None:
            line.extra_s = 0.0

        self.later(2.0, heal)
        return True
