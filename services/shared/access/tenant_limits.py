"""What one tenant may use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from services.shared.access.tenant_name import tenant_name
from services.shared.bounds import at_least, within
from services.shared.stream.generation import MAX_WEIGHT, MIN_WEIGHT

EVERY_OTHER = "*"
"""Stands for each tenant that is not named, alone."""


class Priority(StrEnum):
    """The most urgent that a tenant's generations may be."""

    INTERACTIVE = "interactive"
    BATCH = "batch"


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantLimits:
    """An entry of a file of tenants; what is None has no limit.

    Args:
        tenant: its name, or `*` for each that is not named.
        requests_per_minute: requests that come.
        tokens_per_minute: of prompts and outputs.
        max_concurrency: generations at a time.
        max_tokens: output tokens of one generation; what asks for more gets these.
        models: names that it may ask for; none named, all.
        priority: `batch`: its generations wait for those of others.
        weight: its share against other tenants' while generations wait; None, the router's.
    """

    tenant: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_concurrency: int | None = None
    max_tokens: int | None = None
    models: tuple[str, ...] = ()
    priority: Priority = Priority.INTERACTIVE
    weight: float | None = None

    def __post_init__(self) -> None:
        if self.tenant != EVERY_OTHER:
            tenant_name(self.tenant)
        at_least("requests_per_minute", self.requests_per_minute, 1)
        at_least("tokens_per_minute", self.tokens_per_minute, 1)
        at_least("max_concurrency", self.max_concurrency, 1)
        at_least("max_tokens", self.max_tokens, 1)
        within("weight", self.weight, MIN_WEIGHT, MAX_WEIGHT)

    @property
    def counts(self) -> bool:
        """Whether what the tenant does must be counted."""
        return not (
            self.requests_per_minute is None
            and self.tokens_per_minute is None
            and self.max_concurrency is None
        )

    def divided(self, by: int) -> TenantLimits:
        """The share of one of so many processes; each is left with one of everything."""
        if by == 1:
            return self
        return replace(
            self,
            requests_per_minute=_part(self.requests_per_minute, by),
            tokens_per_minute=_part(self.tokens_per_minute, by),
            max_concurrency=_part(self.max_concurrency, by),
        )

    @classmethod
    def parse(cls, text: str) -> TenantLimits:
        """A name alone: a tenant without limits, whatever `*` has."""
        return cls(tenant=text)


def _part(limit: int | None, by: int) -> int | None:
    return None if limit is None else max(1, limit // by)


NO_LIMITS = TenantLimits(tenant=EVERY_OTHER)
