"""What a world is made of: drawn from its seed, and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from services.router.demand import Lane

CONTEXT_LENGTH = 384


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineParameters:
    """One engine.

    Args:
        step_s: how long a step takes at least; each token computed adds `token_s`.
        coalesce_s: how long events wait for others to go with them.
        startup_s: from the start of the process until it is ready.
        pool: the only lane that it takes where another has the other lane; None for both.
    """

    blocks: int
    block_size: int
    context_length: int
    step_s: float
    token_s: float
    coalesce_s: float
    startup_s: float
    max_batch_size: int
    token_budget: int
    max_concurrency: int
    pool: Lane | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantParameters:
    """Who asks, with its share and how much it asks for."""

    name: str
    weight: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WorldParameters:
    """One world.

    Args:
        generations: that each client asks for, one after the other.
        think_s: between two of them, on average.
        duration_s: how long clients ask and faults happen.
        delay_s: of the network, on average.
        has_faults: about one world in ten has none.
    """

    seed: int
    engines: tuple[EngineParameters, ...]
    tenants: tuple[TenantParameters, ...]
    clients: int
    generations: int
    think_s: float
    max_tokens: int
    duration_s: float
    delay_s: float
    has_faults: bool


def world_of(seed: int) -> WorldParameters:
    random = Random(f"world {seed}")
    block_size = random.choice((4, 8, 16))
    pools = [round(8 * 50 ** random.random()) for _ in range(random.randint(1, 8))]
    context_length = min(CONTEXT_LENGTH, min(pools) * block_size)
    duration_s = random.uniform(3, 20)
    clients = round(40 ** random.random())
    generations = max(1, min(8, 80 // clients))
    return WorldParameters(
        seed=seed,
        engines=tuple(_engine(random, blocks, block_size, context_length) for blocks in pools),
        tenants=tuple(
            TenantParameters(name=f"tenant-{number}", weight=random.choice((1, 1, 2, 4)))
            for number in range(random.randint(1, 4))
        ),
        clients=clients,
        generations=generations,
        think_s=duration_s / generations / 2,
        max_tokens=random.choice((8, 24, 64)),
        duration_s=duration_s,
        delay_s=random.choice((0.0002, 0.001, 0.01)),
        has_faults=random.random() > 0.1,
    )


def _engine(random: Random, blocks: int, block_size: int, context_length: int) -> EngineParameters:
    slow = random.random() < 0.25
    step_s = random.uniform(0.015, 0.05) if slow else random.uniform(0.001, 0.015)
    max_batch_size = random.choice((1, 2, 4, 8, 16))
    return EngineParameters(
        blocks=blocks,
        block_size=block_size,
        context_length=context_length,
        step_s=step_s,
        token_s=step_s / 50,
        coalesce_s=random.choice((0, 0, 0.005, 0.05)),
        startup_s=random.uniform(0.05, 1),
        max_batch_size=max_batch_size,
        token_budget=random.choice((16, 32, 64, 256)),
        max_concurrency=random.choice((max_batch_size, 2 * max_batch_size, 64)),
        pool=random.choice((None, None, None, None, Lane.SHORT, Lane.LONG)),
    )
