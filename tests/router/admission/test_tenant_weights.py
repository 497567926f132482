"""Whose word counts for a tenant's share."""

from __future__ import annotations

from services.router.admission.tenant_weights import MAX_REMEMBERED, TenantWeights


def test_settings_go_before_what_generations_tell() -> None:
    weights = TenantWeights({"named": 2.0})
    weights.hear("named", 9.0)
    weights.hear("told", 3.0)
    assert [weights.of(tenant) for tenant in ("named", "told", "neither")] == [2.0, 3.0, 1.0]


def test_what_was_told_last_counts() -> None:
    weights = TenantWeights({})
    weights.hear("acme", 3.0)
    weights.hear("acme", 0.5)
    assert weights.of("acme") == 0.5
    weights.hear("acme", None)
    assert weights.of("acme") == 1.0


def test_as_many_are_remembered_as_there_is_room_for() -> None:
    weights = TenantWeights({})
    for number in range(MAX_REMEMBERED):
        weights.hear(f"t-{number}", 2.0)
    weights.hear("t-0", 2.0)
    weights.hear("newcomer", 2.0)
    told = [name for name in ("t-0", "t-1", "t-2", "newcomer") if weights.of(name) == 2.0]
    assert told == ["t-0", "t-2", "newcomer"]
