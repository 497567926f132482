"""What a generation asks of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from services.router.chain import Chain, Layout
from services.shared.stream.generation import Generation, PriorityClass

ASSUMED_OUTPUT_TOKENS = 512
"""What a generation without a limit is expected to bring, for balancing only."""

LOCAL_TENANT = ""
"""The tenant of callers that name none."""


class Lane(StrEnum):
    """Short and long prompts wait apart, so that neither holds up the other."""

    SHORT = "short"
    LONG = "long"


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """A generation as balancing and admission see it.

    Args:
        token_ids: prompt and outputs delivered before: what must be computed or found cached.
        output_tokens: expected to come.
        weight: the tenant's share against others', as who asks says; None where that is not said.
        session: tenant and session key; generations with equal ones like the same replica.
        continued: outputs were delivered before, here or by another router.
        version: the only model version that may serve it; None while any may.
        avoid: replicas, by name and epoch, that failed it since its last token.
        reads_cache: blocks that were computed before may be used for it.
        writes_cache: its own may be left for others.
        chains: addresses of its blocks; a demand that waits is looked up again and again.
    """

    model: str
    token_ids: Sequence[int]
    output_tokens: int
    lane: Lane
    priority_class: PriorityClass = PriorityClass.INTERACTIVE
    tenant: str = LOCAL_TENANT
    weight: float | None = None
    salt: bytes = b""
    session: tuple[str, str] | None = None
    continued: bool = False
    version: str | None = None
    avoid: frozenset[tuple[str, int]] = frozenset()
    reads_cache: bool = True
    writes_cache: bool = True
    chains: dict[Layout, Chain] = field(default_factory=dict, repr=False, compare=False)

    @property
    def prompt_tokens(self) -> int:
        """Tokens to compute, were nothing cached."""
        return len(self.token_ids)

    @property
    def tokens(self) -> int:
        """Tokens to compute and to come, were nothing cached."""
        return len(self.token_ids) + self.output_tokens


def demand_of(
    generation: Generation,
    long_prompt_tokens: int,
    version: str | None = None,
    avoid: frozenset[tuple[str, int]] = frozenset(),
) -> Demand:
    """Args: long_prompt_tokens: prompts from this length on use the long lane."""
    quality, key = generation.quality_of_service, generation.routing.session_key
    tenant = quality.tenant or LOCAL_TENANT
    limit = generation.stopping.max_tokens
    given = len(generation.generated_ids)
    is_long = len(generation.prompt_ids) >= long_prompt_tokens
    return Demand(
        model=generation.model,
        token_ids=[*generation.prompt_ids, *generation.generated_ids],
        output_tokens=ASSUMED_OUTPUT_TOKENS if limit is None else limit - given,
        lane=Lane.LONG if is_long else Lane.SHORT,
        priority_class=quality.priority_class,
        tenant=tenant,
        weight=quality.weight,
        salt=generation.cache.salt,
        session=None if key is None else (tenant, key),
        continued=given > 0,
        version=version or generation.routing.model_version,
        avoid=avoid,
        reads_cache=generation.cache.read,
        writes_cache=generation.cache.write,
    )
