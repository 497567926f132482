"""The replicas behind a router, and the model that they stand for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from services.router.candidate import Snapshot
from services.router.demand import Demand
from services.router.replica import Replica
from services.router.status import TAKING, Identity, Status
from services.shared.stream.load import Load

_log = logging.getLogger(__name__)


class Fleet:
    """Holds replicas by name; a replica of another model or tokenizer than theirs takes nothing.

    The model is that of the first replica that was described, as long as a reachable one has it.

    Args:
        on_change: called when a replica may have become ready or not ready.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._replicas: dict[str, Replica] = {}
        self._on_change = on_change
        self.identity: Identity | None = None

    def add(self, replica: Replica) -> None:
        self._replicas[replica.name] = replica

    def __getitem__(self, name: str) -> Replica:
        return self._replicas[name]

    def tell_load(self, name: str, load: Load | None) -> None:
        """A load that came from a replica, or None when its session went down."""
        replica = self._replicas[name]
        before = replica.load
        replica.tell_load(load)
        if load is None:
            self._settle_identity()
        if before is None or load is None or before.state is not load.state:
            self._on_change()

    def tell_identity(self, name: str, identity: Identity) -> None:
        """A replica's description; one that comes after its session is ignored."""
        replica = self._replicas[name]
        if replica.load is None:
            return
        replica.identity = identity
        self._settle_identity()
        if identity != self.identity:
            _log.error("%s takes nothing: it serves %s, not %s", name, identity, self.identity)
        self._on_change()

    def snapshot(self, demand: Demand) -> Snapshot:
        """The fleet as `demand` meets it now."""
        return Snapshot(
            model=self.identity.model if self.identity else None,
            candidates=[
                replica.candidate(demand, self.identity) for replica in self._replicas.values()
            ],
        )

    def ready(self) -> list[str]:
        """Names of the replicas that take generations."""
        return self._with(*TAKING)

    def loads(self) -> list[Load]:
        """Loads of the reachable replicas of the fleet's model."""
        return [
            replica.load
            for replica in self._replicas.values()
            if replica.load is not None and replica.identity == self.identity
        ]

    def members(self) -> list[str]:
        """Names of the reachable replicas of the fleet's model."""
        return self._with(*TAKING, Status.DRAINING, Status.STARTING)

    def _with(self, *statuses: Status) -> list[str]:
        return [
            replica.name
            for replica in self._replicas.values()
            if replica.identity is not None and replica.status(self.identity) in statuses
        ]

    def _settle_identity(self) -> None:
        known = [replica.identity for replica in self._replicas.values() if replica.identity]
        if self.identity not in known:
            self.identity = known[0] if known else None
