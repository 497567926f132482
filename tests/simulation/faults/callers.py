"""What clients do that a server would rather not see."""

from __future__ import annotations

from tests.simulation.faults.fault import Fault

BURST = 40


class Burst(Fault):
    """A tenant asks for much at once."""

    def strike(self) -> bool:
        tenant = self.random.choice(self.world.clients).tenant
        clients = [client for client in self.world.clients if client.tenant == tenant]
        for _ in range(self.random.randint(5, BURST)):
            self.random.choice(clients).ask()
        return True


class Leave(Fault):
    """A client goes away in the middle of its answers."""

    def strike(self) -> bool:
        waiting = [client for client in self.world.clients if client.is_waiting]
        return bool(waiting) and self.random.choice(waiting).leave()


class NoReading(Fault):
    """A client reads nothing from now on."""

    def strike(self) -> bool:
        self.random.choice(self.world.clients).reads = False
        return True
