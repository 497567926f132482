"""A generation that waits for a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from services.router.balancing.balancer import Decision
from services.router.demand import ASSUMED_OUTPUT_TOKENS, Demand
from services.shared.errors import ServiceError


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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Waiting:
    """An applicant in the queue.

    Args:
        demand: as it entered.
        tokens: what it is expected to cost.
    """

    applicant: Applicant
    demand: Demand
    tokens: int

    @classmethod
    def of(cls, applicant: Applicant) -> Waiting:
        demand = applicant.demand
        return cls(applicant=applicant, demand=demand, tokens=expected_cost(demand))


def expected_cost(demand: Demand) -> int:
    """Tokens that a tenant is charged when a generation goes after it waited.

    Corrected when it has ended: limits are caps, and callers set them high.
    """
    return demand.prompt_tokens + min(demand.output_tokens, ASSUMED_OUTPUT_TOKENS)
