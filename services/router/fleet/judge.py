"""What is to be thought of each replica of a fleet, given all others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, ValuesView
from math import floor

from services.router.clock import Clock
from services.router.fleet.ejection import Cause
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.status import TAKING, Identity, Status, Verdict

NORMAL = (Status.STARTING, Status.READY, Status.DRAINING)
LEAVING = (Status.STUCK, Status.DRAINING, Status.STARTING)
"""States of replicas whose generations go on elsewhere; one that starts, and has some, is a router
without replicas."""

_log = logging.getLogger(__name__)


class Judge:
    """Keeps the state of each replica: whether it fits, is able, and may be done without.

    Args:
        replicas: of the fleet, which adds and removes them.
        rules: how they are judged.
        clock: the router's.
        on_change: called when the state of a replica has changed.

    Attributes:
        identity: what the fleet serves; None while no replica is described.
        revision: counts the identities that it has had.
    """

    def __init__(
        self,
        replicas: Mapping[str, Replica],
        rules: FleetRules,
        clock: Clock,
        on_change: Callable[[], None],
    ) -> None:
        self.identity: Identity | None = None
        self.revision = 0
        self._last: Identity | None = None
        self._replicas = replicas
        self._rules = rules
        self._clock = clock
        self._on_change = on_change

    def settle(self) -> None:
        """The fleet stands for what it stood for, as long as one replica does.

        Of versions beside each other it stands for one that takes new generations.
        """
        versions = self._rules.versions
        known = [one.identity for one in self._all() if one.identity is not None]
        leading = [one for one in known if versions.may_lead(one)]
        leading = [one for one in leading if versions.takes_new(one.version)] or leading
        if self.identity not in leading:
            self.identity = leading[0] if leading else None
            if self.identity not in (None, self._last):
                self._last = self.identity
                self.revision += 1
            for replica in self._all():
                self.judge(replica)

    def sweep(self) -> None:
        """Looks at all again: time alone changes some."""
        self._keep_share()
        for replica in self._all():
            self.judge(replica)

    def judge(self, replica: Replica) -> None:
        """Looks at one replica again."""
        verdict = self._verdict(replica)
        newly_ejected = verdict.status is Status.EJECTED is not replica.status
        if newly_ejected and self._ejectable() < 1:
            replica.health.ejection.spare()
            verdict = self._verdict(replica)
        before, replica.status, replica.reason = replica.status, verdict.status, verdict.reason
        if before is not verdict.status:
            _tell(replica, before)
            self._on_change()

    def _verdict(self, replica: Replica) -> Verdict:
        identity, fleet = replica.identity, self.identity
        if identity is not None and (
            fleet is None or not self._rules.versions.may_join(identity, fleet)
        ):
            return Verdict(Status.MISMATCHED, identity.unlike(fleet))
        return replica.verdict(self._clock.time())

    def _ejectable(self) -> int:
        """How many more may be ejected; below 0 where too many are."""
        described = [
            one for one in self._all() if one.identity and one.status is not Status.MISMATCHED
        ]
        ejected = sum(one.status is Status.EJECTED for one in described)
        return floor(self._rules.health.max_ejected_share * len(described) + 1e-9) - ejected

    def _keep_share(self) -> None:
        """When others have gone, those that were ejected last are needed again."""
        excess = -self._ejectable()
        if excess > 0:
            ejected = [one for one in self._all() if one.status is Status.EJECTED]
            ejected.sort(key=lambda one: one.health.ejection.since)
            for replica in ejected[-excess:]:
                replica.health.ejection.spare()

    def should_leave(self, replica: Replica) -> bool:
        """Whether its generations would go on elsewhere, and do not here or may not."""
        ejection, identity = replica.health.ejection, replica.identity
        unable = replica.status is Status.EJECTED and ejection.cause is Cause.PROBE
        if identity is None or not (unable or replica.status in LEAVING):
            return False
        return any(
            one.status in TAKING and one.weight > 0 and one.identity.version == identity.version
            for one in self._all()
            if one.identity is not None
        )

    def _all(self) -> ValuesView[Replica]:
        return self._replicas.values()


def _tell(replica: Replica, before: Status) -> None:
    """One line for each change of state."""
    status = replica.status
    fields = {"replica": replica.name, "from": before, "to": status, "why": replica.reason}
    level = logging.INFO if status in NORMAL else logging.WARNING
    text = f"{status}: {replica.reason}" if replica.reason else status
    _log.log(level, "%s is %s", replica.name, text, extra={"fields": fields})
