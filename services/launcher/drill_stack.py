"""Where the services are that a drill is run against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.launcher.drill_fault import CannotDrill, Target
from services.launcher.run_file import RunFile, Running


@dataclass(frozen=True, kw_only=True, slots=True)
class DrillStack:
    """A stack that runs.

    Attributes:
        url: of the codec, without a slash at its end.
        router: `host:port` of the router.
        processes: the engines that were started here.
    """

    url: str
    router: str
    processes: Sequence[Running] = ()

    def target(self, replicas: Sequence[str], number: int) -> Target:
        """The engine of that number. Raises CannotDrill.

        Args:
            replicas: addresses of all that the router knows, in its order.
            number: counted as `tokenway up` does, or in the router's order where it started none.
        """
        targets = [
            Target(name=one.name, address=one.doors["grpc"], process=one) for one in self.processes
        ] or [Target(name=f"replica {address}", address=address) for address in replicas]
        if number >= len(targets):
            raise CannotDrill(f"engine must be < {len(targets)}, got {number}")
        target = targets[number]
        if target.address not in replicas:
            raise CannotDrill(f"the router at {self.router} has no replica {target.address}")
        return target


def stack_of(log_dir: Path) -> DrillStack:
    """The stack of `tokenway up`. Raises NotRunning."""
    run = RunFile(log_dir).read()
    by_service = {one.service: one for one in run.services}
    return DrillStack(
        url=run.url,
        router=by_service["router"].doors["grpc"],
        processes=[one for one in run.services if one.service == "engine"],
    )
