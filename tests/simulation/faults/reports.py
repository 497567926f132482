"""What goes wrong with the loads that replicas tell."""

from __future__ import annotations

from dataclasses import replace

from services.shared.stream.load import Load, ReplicaState
from tests.simulation.faults.fault import Fault
from tests.simulation.host import Report, honest


class _Reports(Fault):
    """Replaces a host's reports for a while."""

    def report(self) -> Report:
        raise NotImplementedError

    def strike(self) -> bool:
        host = self.machine()
        report = host.report = self.report()

        def heal() -> None:
            if host.report is report:
                host.report = honest

        self.later(3.0, heal)
        return True


class NoLoads(_Reports):
    """None is told any more."""

    def report(self) -> Report:
        return lambda _: None


class OldLoads(_Reports):
    """The same one is told again and again."""

    def report(self) -> Report:
        kept: list[Load] = []

        def old(load: Load) -> Load:
            kept.append(load)
            return kept[0]

        return old


class Lies(_Reports):
    """Any numbers are told, some of which cannot be."""

    def report(self) -> Report:
        def lie(load: Load) -> Load:
            draw = self.random.randrange
            return replace(
                load,
                running=draw(100),
                waiting=draw(100),
                outstanding_tokens=draw(100_000),
                pending_prompt_tokens=draw(100_000),
                free_blocks=draw(2 * load.total_blocks + 1),
                slots=draw(4),
            )

        return lie


class Moods(_Reports):
    """The replica says that it is ready, that it starts, that it drains, each second another."""

    def report(self) -> Report:
        return lambda load: replace(load, state=self.random.choice(list(ReplicaState)))
