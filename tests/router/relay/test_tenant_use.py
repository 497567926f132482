"""Who has how much in a router."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.demand import Demand, Lane
from services.router.relay.tenant_use import TenantUse, tenant_uses


@dataclass(frozen=True, slots=True)
class Generation:
    tenant: str
    tokens: int
    replica: str | None = None

    @property
    def demand(self) -> Demand:
        return Demand(
            model="m",
            token_ids=[1] * self.tokens,
            output_tokens=10,
            lane=Lane.SHORT,
            tenant=self.tenant,
        )


def test_generations_are_counted_by_tenant_and_the_largest_is_first() -> None:
    uses = tenant_uses(
        [
            Generation("small", 5, "a"),
            Generation("large", 50, "a"),
            Generation("large", 60),
            Generation("large", 70, "b"),
        ]
    )
    assert uses == [
        TenantUse(tenant="large", running=2, waiting=1, tokens=210),
        TenantUse(tenant="small", running=1, waiting=0, tokens=15),
    ]


def test_without_generations_there_is_nobody() -> None:
    assert tenant_uses([]) == []
