"""What happens to the fleet: replicas come, go, weigh more or less, or serve something else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.simulation.assembly import identity
from tests.simulation.faults.fault import Fault
from tests.simulation.versions import VERSIONS

MOST_HOSTS = 10


class AdminDrain(Fault):
    """An operator takes a replica's work away, and gives it back later."""

    def strike(self) -> bool:
        life, name = self.world.front.life, self.host().name
        if life is None or name not in life.sessions:
            return False
        life.router.drain_replica(name, undo=False)

        self.later(2.0, partial(life.allow, name))
        return True


class Reweight(Fault):
    """An operator changes a replica's share."""

    def strike(self) -> bool:
        life, name = self.world.front.life, self.host().name
        if life is None or name not in life.sessions:
            return False
        life.router.set_weight(name, self.random.choice((0.0, 0.25, 1.0, 4.0)))

        def heal() -> None:
            if not life.is_over and name in life.sessions:
                life.router.set_weight(name, 1.0)

        self.later(2.0, heal)
        return True


class Remove(Fault):
    """A replica is named no more; later it is again."""

    def strike(self) -> bool:
        life, host = self.world.front.life, self.host()
        if life is None or host.name not in life.sessions:
            return False
        life.dismiss(host.name)

        def heal() -> None:
            if not life.is_over:
                life.meet(host)

        self.later(2.0, heal)
        return True


class Add(Fault):
    """A new replica comes and stays."""

    def strike(self) -> bool:
        if len(self.world.hosts) >= MOST_HOSTS:
            return False
        parameters = self.random.choice(self.world.parameters.engines)
        self.world.add_host(parameters)
        return True


class AnotherModel(Fault):
    """A replica starts again with another model or another tokenizer."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        real = host.identity
        if self.random.random() < 0.5:
            host.identity = replace(real, model="another")
        else:
            host.identity = replace(real, tokenizer_fingerprint="other words")
        host.kill()
        host.start()

        def heal() -> None:
            host.identity = identity(host.parameters, host.version)
            host.kill()
            host.start()

        self.later(2.0, heal)
        return True


class AnotherVersion(Fault):
    """A replica starts again with another version of the model."""

    def strike(self) -> bool:
        host = self.host()
        if host.process is None:
            return False
        host.version = self.random.choice(VERSIONS)
        host.identity = identity(host.parameters, host.version)
        host.kill()
        host.start()
        return True


class LostBlocks(Fault):
    """A message about blocks never arrives."""

    def strike(self) -> bool:
        session = self.session()
        if session is None or not session.is_up:
            return False
        session.lose_blocks = self.random.randint(1, 3)
        return True
