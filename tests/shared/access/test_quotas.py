"""Tenants find their limits, also when these change, and are forgotten at rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.shared.access.quotas import Quotas
from services.shared.access.tenant_limits import NO_LIMITS, Priority, TenantLimits
from services.shared.access.tenants_file import Tenants, read_tenants
from services.shared.config import BadConfig
from services.shared.errors import RateLimited
from tests.shared.access.test_bucket import Time

ACME = TenantLimits(tenant="acme", requests_per_minute=1)
OTHER = TenantLimits(tenant="*", requests_per_minute=2)


def test_who_is_not_named_has_the_limits_of_every_other_alone() -> None:
    tenants: Tenants = {"acme": ACME, "*": OTHER}
    quotas = Quotas(lambda: tenants, Time())
    assert quotas.of("acme").limits is ACME
    assert quotas.of("a").limits is quotas.of("b").limits is OTHER
    assert quotas.of("a") is not quotas.of("b")
    assert quotas.of(None).limits is NO_LIMITS


def test_limits_that_change_count_at_once() -> None:
    tenants: Tenants = {"acme": ACME}
    quotas = Quotas(lambda: tenants, Time())
    quotas.of("acme").enter()
    with pytest.raises(RateLimited):
        quotas.of("acme").enter()
    tenants = {"acme": replace(ACME, requests_per_minute=None)}
    quotas.of("acme").enter()
    tenants = {}
    assert quotas.of("acme").limits is NO_LIMITS


def test_tenants_at_rest_are_forgotten_and_others_are_not() -> None:
    time = Time()
    quotas = Quotas(lambda: {"*": OTHER}, time, size=10)
    busy = quotas.of("busy")
    with busy.reserve(1, 1):
        for number in range(1000):
            quotas.of(f"t-{number}")
        assert len(quotas._quotas) <= 11
        assert quotas.of("busy") is busy


TEXT = """
tenants:
- {tenant: acme, requests_per_minute: 60, tokens_per_minute: 10000, max_concurrency: 4,
   max_tokens: 500, models: [small], priority: batch, weight: 2.5}
- free
- {tenant: "*", requests_per_minute: 1}
"""


def test_a_file_says_it_all(tmp_path: Path) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text(TEXT)
    tenants = read_tenants(path)
    assert tenants["acme"] == TenantLimits(
        tenant="acme",
        requests_per_minute=60,
        tokens_per_minute=10_000,
        max_concurrency=4,
        max_tokens=500,
        models=("small",),
        priority=Priority.BATCH,
        weight=2.5,
    )
    assert tenants["free"] == TenantLimits(tenant="free")
    assert tenants["*"].requests_per_minute == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tenants must be set"),
        ("tenants: 7", "tenants must be a list"),
        ("tenants: [{tenant: a, requests: 1}]", "requests is unknown"),
        ("tenants: [{requests_per_minute: 1}]", "tenant must be set"),
        ("tenants: [{tenant: a b}]", "tenant must be 1 to 64 letters"),
        ("tenants: [{tenant: a, tokens_per_minute: 0}]", "tokens_per_minute must be >= 1, got 0"),
        ("tenants: [{tenant: a, max_tokens: many}]", "max_tokens must be an integer"),
        ("tenants: [{tenant: a, priority: high}]", "priority must be one of interactive, batch"),
        ("tenants: [{tenant: a, weight: 0}]", "weight must be between 0.001 and 1000.0, got 0"),
        ("tenants: [a, a]", "tenants must name each tenant once"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tenants.yaml"
    path.write_text(text)
    with pytest.raises(BadConfig) as caught:
        read_tenants(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
