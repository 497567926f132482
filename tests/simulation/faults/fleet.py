"""What happens to the fleet: replicas come, go, weigh more or less, or serve something else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.simulation.assembly import identity
from tests.simulation.faults.fault import Fault
from tests.simulation.front import Life
from tests.simulation.versions import VERSIONS

MOST_HOSTS = 10


class _OfReplica(Fault):
    """What an operator does to one replica of a router."""

    def act(self, life: Life, name: str) -> None:
        raise NotImplementedError

    def strike(self) -> bool:
        life = self.life()
        if life is None or not life.sessions:
            return False
        self.act(life, self.random.choice(list(life.sessions)))
        return True


class AdminDrain(_OfReplica):
    """Its work is taken away; later it is given some again."""

    def act(self, life: Life, name: str) -> None:
        life.router.drain_replica(name, undo=False)
        self.later(2.0, partial(life.allow, name))


class Reweight(_OfReplica):
    """Its share is changed; later it is as before."""

    def act(self, life: Life, name: str) -> None:
        life.router.set_weight(name, self.random.choice((0.0, 0.25, 1.0, 4.0)))

        def heal() -> None:
            if not life.is_over and name in life.sessions:
                life.router.set_weight(name, 1.0)

        self.later(2.0, heal)


class Remove(_OfReplica):
    """It is named no more; later it is again."""

    def act(self, life: Life, name: str) -> None:
        host = life.hosts[name]
        life.dismiss(name)

        def heal() -> None:
            if not life.is_over:
                life.meet(host)

        self.later(2.0, heal)


class Add(Fault):
    """A new replica comes and stays."""

    def strike(self) -> bool:
        if len(self.world.machines.hosts) >= MOST_HOSTS:
            return False
        parameters = self.random.choice(self.world.parameters.engines)
        machines = self.world.machines
        machines.add_engine(parameters, self.random.choice(machines.fronts))
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
