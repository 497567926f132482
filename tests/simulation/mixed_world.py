"""Worlds in which everything differs and, in most of them, much goes wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from services.engine.kv.cache_settings import PeerSettings
from services.router.demand import Lane
from services.router.status import Role
from tests.simulation.parameters import (
    ClientParameters,
    EngineParameters,
    Mix,
    WorldParameters,
)
from tests.simulation.router_rules import rules_of
from tests.simulation.versions import VERSIONS

CONTEXT_LENGTH = 384


def mixed_world(seed: int) -> WorldParameters:
    random = Random(f"world {seed}")
    sizes = (4, 8, 16) if random.random() < 0.2 else (random.choice((4, 8, 16)),)
    pools = [round(8 * 50 ** random.random()) for _ in range(random.randint(1, 8))]
    duration_s = random.uniform(3, 20)
    versions = VERSIONS if random.random() < 0.35 else VERSIONS[:1]
    engines = tuple(
        _engine(random, blocks, random.choice(sizes), random.choice(versions)) for blocks in pools
    )
    context_length = min(CONTEXT_LENGTH, *(one.blocks * one.block_size for one in engines))
    clusters = min(random.choice((0, 0, 0, 0, 1, 2)), len(engines) - 1)
    weights = {f"tenant-{n}": random.choice((1, 1, 2, 4)) for n in range(random.randint(1, 4))}
    return WorldParameters(
        seed=seed,
        engines=_sorted(seed, [replace(one, context_length=context_length) for one in engines]),
        clients=_clients(random, list(weights), duration_s),
        requests=Mix(max_tokens=random.choice((8, 24, 64))),
        rules=rules_of(Random(f"rules {seed}"), weights, {one.version for one in engines}),
        duration_s=duration_s,
        delay_s=random.choice((0.0002, 0.001, 0.01)),
        has_faults=random.random() > 0.1,
        clusters=clusters,
        is_looped=clusters > 0 and random.random() < 0.4,
    )


def _sorted(seed: int, engines: list[EngineParameters]) -> tuple[EngineParameters, ...]:
    """In half of the worlds most engines fetch from each other; most of these have roles."""
    random = Random(f"roles {seed}")
    if random.random() < 0.5:
        return tuple(engines)
    roles = random.choice(((Role.BOTH,), tuple(Role), (Role.PREFILL, Role.DECODE)))
    rules = peers_of(random)
    return tuple(
        replace(one, role=random.choice(roles), peers=rules if random.random() < 0.9 else None)
        for one in engines
    )


def peers_of(random: Random) -> PeerSettings:
    return PeerSettings(
        patience_s=random.choice((0.1, 0.5, 2)),
        arrival_s=random.choice((0, 0.05, 0.2)),
        fetches=random.choice((1, 2, 16)),
    )


def _clients(random: Random, tenants: list[str], duration_s: float) -> tuple[ClientParameters, ...]:
    count = round(40 ** random.random())
    generations = max(1, min(8, 80 // count))
    hurry = random.choice((1, 2, 20))
    return tuple(
        ClientParameters(
            tenant=random.choice(tenants),
            generations=generations,
            think_s=duration_s / generations / hurry,
        )
        for _ in range(count)
    )


def _engine(random: Random, blocks: int, block_size: int, version: str) -> EngineParameters:
    slow = random.random() < 0.25
    step_s = random.uniform(0.015, 0.05) if slow else random.uniform(0.001, 0.015)
    max_batch_size = random.choice((1, 2, 4, 8, 16))
    return EngineParameters(
        blocks=blocks,
        block_size=block_size,
        version=version,
        context_length=CONTEXT_LENGTH,
        step_s=step_s,
        token_s=step_s / 50,
        coalesce_s=random.choice((0, 0, 0.005, 0.05)),
        startup_s=random.uniform(0.05, 1),
        max_batch_size=max_batch_size,
        token_budget=random.choice((16, 32, 64, 256)),
        max_concurrency=random.choice((max_batch_size, 2 * max_batch_size, 64)),
        pool=random.choice((None, None, None, None, Lane.SHORT, Lane.LONG)),
    )
