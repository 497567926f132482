"""One fault on one replica, from its beginning until the replica is back."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

from services.launcher.drill_fault import ENDS_SESSION, FAULTS, CannotDrill, Target
from services.launcher.replica_watch import ReplicaWatch

PATIENCE_S = 60.0
"""How long a replica has to come back when the fault is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drilled:
    """A replica and what is done to it.

    Attributes:
        router: where it is known.
        fault: a name of `FAULTS`.
        seconds: how long the fault lasts, where it lasts.
    """

    router: rpc.RouterServiceStub
    target: Target
    fault: str
    seconds: float

    async def back_after(self) -> float | None:
        """Seconds from the fault until the replica is ready again; None: not in time.

        Raises:
            CannotDrill: it is not ready now, or there is no process to do it to.
        """
        watch = ReplicaWatch(self.router, self.target.address)
        before = await watch.replica()
        if before is None or before.status != pb.REPLICA_STATUS_READY:
            raise CannotDrill(f"{self.target.name} is not ready; see `tokenway router list`")
        began = monotonic()
        await FAULTS[self.fault](self.target, self.router, self.seconds)
        lasts_s = self.seconds if self.fault == "partition" else 0.0
        after_epoch = before.epoch if self.fault in ENDS_SESSION else before.epoch - 1
        ready = await watch.until_ready(after_epoch, lasts_s + PATIENCE_S)
        return monotonic() - began if ready else None
