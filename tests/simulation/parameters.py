"""What a world is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from services.engine.kv.cache_settings import PeerSettings
from services.router.demand import Lane
from services.router.status import Role
from tests.simulation.router_rules import RouterRules


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineParameters:
    """One engine.

    Args:
        step_s: how long a step takes at least; each token computed adds `token_s`.
        coalesce_s: how long events wait for others to go with them.
        startup_s: from the start of the process until it is ready.
        pool: the only lane that it takes where another has the other lane; None for both.
        role: what it is for.
        peers: how it fetches from other engines and lends to them; None where it does not.
    """

    blocks: int
    block_size: int
    version: str
    context_length: int
    step_s: float
    token_s: float
    coalesce_s: float
    startup_s: float
    max_batch_size: int
    token_budget: int
    max_concurrency: int
    pool: Lane | None
    role: Role = Role.BOTH
    peers: PeerSettings | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientParameters:
    """One client.

    Args:
        generations: that it asks for, one after the other.
        think_s: between two of them, on average.
    """

    tenant: str
    generations: int
    think_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    """Generations of all kinds; outputs have `max_tokens` at most."""

    max_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Backlog:
    """Always more plain generations than there is room for, prompts up to so many tokens.

    Args:
        light: the tenant that asks for little.
    """

    prompt_tokens: Mapping[str, int]
    max_tokens: int
    light: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WorldParameters:
    """One world.

    Args:
        duration_s: how long clients ask and faults happen.
        delay_s: of the network, on average.
        clusters: routers that are replicas of the first and have engines of their own.
        is_looped: the first is, by a mistake, a replica of the last of these.
        faults: the only ones that there may be; None for any.
    """

    seed: int
    engines: tuple[EngineParameters, ...]
    clients: tuple[ClientParameters, ...]
    requests: Mix | Backlog
    rules: RouterRules
    duration_s: float
    delay_s: float
    has_faults: bool
    clusters: int = 0
    is_looped: bool = False
    faults: frozenset[str] | None = None

    @property
    def has_outputs(self) -> bool:
        """Whether an engine is there that is not for prompts alone."""
        return any(engine.role is not Role.PREFILL for engine in self.engines)

    @property
    def context_length(self) -> int:
        """Tokens that prompt and output may have together, at any engine."""
        return min(engine.context_length for engine in self.engines)
