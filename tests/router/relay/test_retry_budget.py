"""How many continuations a share of the traffic pays for."""

from __future__ import annotations

import pytest

from services.router.relay.retry_budget import RetryBudget, RetryRules


def test_a_full_budget_covers_the_death_of_a_replica_and_a_failing_fleet_gets_its_share() -> None:
    budget = RetryBudget(RetryRules(share=0.2, burst=100))
    assert sum(budget.spend() for _ in range(150)) == 100
    assert budget.refused == 50
    granted = 0
    for _ in range(1000):
        budget.earn()
        granted += budget.spend() + budget.spend()
    assert granted == pytest.approx(200, abs=1)


def test_no_more_is_kept_than_the_burst() -> None:
    budget = RetryBudget(RetryRules(share=1, burst=2))
    for _ in range(10):
        budget.earn()
    assert [budget.spend() for _ in range(3)] == [True, True, False]


def test_a_budget_of_nothing_continues_nothing() -> None:
    budget = RetryBudget(RetryRules(share=0, burst=0))
    budget.earn()
    assert not budget.spend()


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"share": -0.1}, "share must be between 0 and 10, got -0.1"),
        ({"burst": -1}, "burst must be between 0 and 1000000, got -1"),
    ],
)
def test_rules_out_of_bounds_name_limit_and_value(rules: dict[str, float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        RetryRules(**rules)  # type: ignore[arg-type]  # passed on
