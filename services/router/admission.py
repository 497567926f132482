"""Who goes to a replica when: the one place where generations wait."""

from __future__ import annotations

from typing import Protocol

from services.router.balancer import Decision, choose
from services.router.demand import Demand
from services.router.fleet import Fleet
from services.shared.errors import Overloaded, ServiceError


class Applicant(Protocol):
    """A generation that wants a place. One of `go` and `refuse` is called, once, unless it leaves.

    Attributes:
        demand: what it asks.
        deadline: on the router's clock; None when it has no end.
    """

    @property
    def demand(self) -> Demand: ...

    @property
    def deadline(self) -> float | None: ...

    def go(self, decision: Decision) -> None:
        """It has a place at a replica."""

    def refuse(self, error: ServiceError) -> None:
        """It will get none."""


class Admission:
    """Gives places at replicas.

    Args:
        fleet: where the places are.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def waiting(self) -> int:
        return 0

    def enter(self, applicant: Applicant) -> None:
        """A new generation; it may `go` before this returns.

        Raises:
            ServiceError: it is not taken; the applicant hears nothing more.
        """
        decision = choose(applicant.demand, self._fleet.snapshot(applicant.demand))
        if decision is None:
            raise Overloaded("all replicas are full")
        applicant.go(decision)

    def resume(self, applicant: Applicant) -> None:
        """One that had a place and lost it: it goes before all new ones and is never too many.

        Raises:
            ServiceError: no place can be had.
        """
        self.enter(applicant)

    def leave(self, applicant: Applicant) -> None:
        """It wants no place any more; does nothing when it does not wait."""

    def pump(self) -> None:
        """Places may have become free: lets those go that have one."""
