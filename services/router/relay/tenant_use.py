"""What each tenant has in a router now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from services.router.demand import Demand


class Underway(Protocol):
    """A generation that has not ended.

    Attributes:
        replica: where it is; None while it waits for a place.
        demand: what it asks.
    """

    @property
    def replica(self) -> str | None: ...

    @property
    def demand(self) -> Demand: ...


@dataclass(kw_only=True, slots=True)
class TenantUse:
    """Generations and what they are expected to cost, in tokens, were nothing cached."""

    tenant: str
    running: int = 0
    waiting: int = 0
    tokens: int = 0


def tenant_uses(generations: Iterable[Underway]) -> list[TenantUse]:
    """Of each tenant that has some, the one with the most tokens first."""
    uses: dict[str, TenantUse] = {}
    for one in generations:
        tenant = one.demand.tenant
        use = uses.get(tenant)
        if use is None:
            use = uses[tenant] = TenantUse(tenant=tenant)
        if one.replica is None:
            use.waiting += 1
        else:
            use.running += 1
        use.tokens += one.demand.tokens
    return sorted(uses.values(), key=attrgetter("tokens"), reverse=True)
