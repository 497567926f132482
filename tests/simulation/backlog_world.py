"""Worlds in which nothing goes wrong and tenants always want more than there is."""

from __future__ import annotations

from random import Random

from services.router.admission.queue_settings import QueueSettings, TenantWeight
from services.router.fleet.health import HealthRules
from services.router.relay.retry_budget import RetryRules
from tests.simulation.parameters import (
    Backlog,
    ClientParameters,
    EngineParameters,
    WorldParameters,
)
from tests.simulation.router_rules import RouterRules, balancing_of
from tests.simulation.versions import VERSIONS

LIGHT = "light"
CLIENTS = 10
"""Of each tenant but the light one: more than all places."""

ENDLESS = 10_000


def backlog_world(seed: int) -> WorldParameters:
    random = Random(f"world {seed}")
    weights = {f"heavy-{number}": random.choice((1, 1, 2)) for number in range(3)}
    engine = EngineParameters(
        blocks=400,
        block_size=16,
        version=VERSIONS[0],
        context_length=256,
        step_s=random.uniform(0.01, 0.03),
        token_s=0.0002,
        coalesce_s=0,
        startup_s=0.1,
        max_batch_size=random.choice((2, 4)),
        token_budget=64,
        max_concurrency=64,
        pool=None,
    )
    return WorldParameters(
        seed=seed,
        engines=(engine,) * random.randint(1, 2),
        clients=_clients(list(weights)),
        requests=Backlog(
            prompt_tokens={LIGHT: 8, **{name: random.choice((8, 24, 48)) for name in weights}},
            max_tokens=random.choice((4, 8)),
            light=LIGHT,
        ),
        rules=_rules(random, weights),
        duration_s=16,
        delay_s=0.0005,
        has_faults=False,
    )


def _clients(tenants: list[str]) -> tuple[ClientParameters, ...]:
    heavy = [
        ClientParameters(tenant=tenant, generations=ENDLESS, think_s=1e-4)
        for tenant in tenants
        for _ in range(CLIENTS)
    ]
    light = ClientParameters(tenant=LIGHT, generations=ENDLESS, think_s=0.5)
    return (*heavy, light)


def _rules(random: Random, weights: dict[str, int]) -> RouterRules:
    return RouterRules(
        health=HealthRules(),
        queue=QueueSettings(
            tenant_weights=tuple(
                TenantWeight(tenant=name, weight=weight) for name, weight in weights.items()
            )
        ),
        retry=RetryRules(),
        balancing=balancing_of(random),
    )
