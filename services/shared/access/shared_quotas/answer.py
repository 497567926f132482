"""What the store is asked of one tenant, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from services.shared.access.quota import Standing
from services.shared.access.shared_quotas.scripts import RENEW, SETTLE, TAKE, Script
from services.shared.access.tenant_limits import TenantLimits

Argument = str | int | float


@dataclass(frozen=True, slots=True)
class Question:
    """A script and what it is given, beside keys and lease.

    Args:
        script: one of `scripts`.
        tenant: whose keys.
        limits: that count now.
        arguments: of the script.
    """

    script: Script
    tenant: str
    limits: TenantLimits
    arguments: tuple[Argument, ...]

    def command(self, prefix: str, lease_s: float) -> tuple[Argument, ...]:
        limits = (
            self.limits.requests_per_minute,
            self.limits.tokens_per_minute,
            self.limits.max_concurrency,
        )
        return (
            *("EVALSHA", self.script.digest, 2),
            # The braces keep the keys of a tenant together where several nodes share all keys.
            *(f"{prefix}:{{{self.tenant}}}:{name}" for name in ("state", "held")),
            *("" if limit is None else limit for limit in limits),
            lease_s,
            *self.arguments,
        )


def taking(tenant: str, limits: TenantLimits, member: str, requests: int) -> Question:
    return Question(TAKE, tenant, limits, (member, requests))


def settling(tenant: str, limits: TenantLimits, member: str, used: int) -> Question:
    return Question(SETTLE, tenant, limits, (member, used))


def renewing(tenant: str, limits: TenantLimits, members: tuple[str, ...]) -> Question:
    return Question(RENEW, tenant, limits, members)


@dataclass(frozen=True, slots=True)
class Answer:
    """Args: done: or not; reached: the limit that forbids it; wait_s: until it does not."""

    done: bool
    reached: str
    wait_s: float
    standing: Standing


def answer_of(told: object) -> Answer:
    """Raises ValueError for anything that no script of ours says."""
    if not isinstance(told, list) or len(told) != 6:
        raise ValueError("the store answers what no script of ours says")
    done, reached, wait_s, requests, tokens, running = told
    standing = Standing(
        requests=float(requests) if requests else None,
        tokens=float(tokens) if tokens else None,
        running=int(running),
    )
    return Answer(bool(done), reached.decode(), float(wait_s), standing)
