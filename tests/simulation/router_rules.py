"""What an operator may set of a router, drawn for one world; invariants hold whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from random import Random

from services.router.admission.queue_settings import QueueSettings, TenantWeight
from services.router.balancing.balancing_settings import BalancingSettings
from services.router.balancing.policies import PolicyName
from services.router.balancing.versions import VersionShare
from services.router.fleet.health import HealthRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.relay.retry_budget import RetryRules
from tests.simulation.versions import VERSIONS


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterRules:
    """The settings of one router."""

    health: HealthRules
    queue: QueueSettings
    retry: RetryRules
    balancing: BalancingSettings
    prefill: PrefillRules = field(default_factory=PrefillRules)


def rules_of(
    random: Random, weights: Mapping[str, float], versions: AbstractSet[str]
) -> RouterRules:
    """Args:
    weights: of the tenants.
    versions: of the engines.
    """
    return RouterRules(
        health=_health(random),
        queue=_queue(random, weights),
        retry=_retry(random),
        balancing=replace(balancing_of(random), versions=_canary(random, versions)),
        prefill=prefill_of(random),
    )


def _health(random: Random) -> HealthRules:
    degraded_after_s = random.uniform(1.5, 3)
    return HealthRules(
        degraded_after_s=degraded_after_s,
        stuck_after_s=degraded_after_s + random.uniform(0, 5),
        load_valid_s=random.uniform(1.5, 4),
        slow_first_token_s=random.choice((0.5, 30)),
        ejection_threshold=random.randint(1, 4),
        ejection_s=random.uniform(0.5, 5),
        max_ejected_share=random.choice((0, 0.3, 0.5, 1)),
        probe_interval_s=random.choice((1, 10)),
        probe_timeout_s=random.uniform(1, 10),
    )


def _queue(random: Random, weights: Mapping[str, float]) -> QueueSettings:
    return QueueSettings(
        max_waiting=random.choice((0, 2, 16, 2048)),
        wait_for_replica_s=random.choice((0, 0.5, 2, 20)),
        slots=random.choice((1, 8, 64)),
        short_window_tokens=random.choice((8, 64, 8192)),
        long_window_tokens=random.choice((64, 16384)),
        tenant_weights=tuple(
            TenantWeight(tenant=name, weight=weight) for name, weight in weights.items()
        ),
    )


def _retry(random: Random) -> RetryRules:
    return RetryRules(share=random.choice((0, 0.2, 1)), burst=random.choice((0, 3, 1000)))


def balancing_of(random: Random) -> BalancingSettings:
    return BalancingSettings(
        policy=random.choice(list(PolicyName)),
        long_prompt_tokens=random.choice((32, 128, 4096)),
    )


def prefill_of(random: Random) -> PrefillRules:
    return PrefillRules(
        threshold_tokens=random.choice((0, 4, 16, 32)), peer_tokens=random.choice((0, 4, 16))
    )


def _canary(random: Random, versions: AbstractSet[str]) -> tuple[VersionShare, ...]:
    """Some routers know both versions; where both are there, one may be on its way out."""
    if random.random() < 0.25:
        return ()
    weight = random.choice((0, 0.1, 1)) if len(versions) > 1 else 1
    return (
        VersionShare(fingerprint=VERSIONS[0], weight=weight),
        VersionShare(fingerprint=VERSIONS[1], weight=1),
    )
