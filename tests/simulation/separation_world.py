"""Worlds of replicas for prompts and for outputs, in which only transfers go wrong.

Nothing of that may be felt by a generation: it costs time and nothing else.
"""

from __future__ import annotations

from random import Random

from services.router.admission.queue_settings import QueueSettings
from services.router.fleet.health import HealthRules
from services.router.fleet.prefill_rules import PrefillRules
from services.router.relay.retry_budget import RetryRules
from services.router.status import Role
from tests.simulation.faults.catalogue import TRANSFERS
from tests.simulation.mixed_world import CONTEXT_LENGTH, peers_of
from tests.simulation.parameters import ClientParameters, EngineParameters, Mix, WorldParameters
from tests.simulation.router_rules import RouterRules, balancing_of
from tests.simulation.versions import VERSIONS


def separation_world(seed: int) -> WorldParameters:
    random = Random(f"world {seed}")
    duration_s = random.uniform(3, 10)
    roles = [
        *[Role.PREFILL] * random.randint(1, 2),
        *random.choices((Role.DECODE, Role.BOTH), k=random.randint(1, 3)),
    ]
    block_size, peers = random.choice((4, 8, 16)), peers_of(random)
    clients, context_length = random.randint(2, 16), random.choice((96, CONTEXT_LENGTH))
    return WorldParameters(
        seed=seed,
        engines=tuple(
            EngineParameters(
                blocks=round(context_length * random.choice((1, 1.2, 4)) / block_size) + 1,
                block_size=block_size,
                version=VERSIONS[0],
                context_length=context_length,
                step_s=random.uniform(0.002, 0.02),
                token_s=0.0005,
                coalesce_s=random.choice((0, 0.005)),
                startup_s=random.uniform(0.05, 0.5),
                max_batch_size=random.choice((2, 8)),
                token_budget=random.choice((16, 64)),
                max_concurrency=64,
                pool=None,
                role=role,
                peers=peers,
            )
            for role in roles
        ),
        clients=(ClientParameters(tenant="one", generations=6, think_s=duration_s / 12),) * clients,
        requests=Mix(max_tokens=random.choice((8, 24))),
        rules=RouterRules(
            health=HealthRules(),
            queue=QueueSettings(),
            retry=RetryRules(share=0, burst=0),
            balancing=balancing_of(random),
            prefill=PrefillRules(threshold_tokens=random.choice((4, 8, 16)), peer_tokens=4),
        ),
        duration_s=duration_s,
        delay_s=random.choice((0.0002, 0.001, 0.01)),
        has_faults=True,
        faults=frozenset(TRANSFERS),
    )
