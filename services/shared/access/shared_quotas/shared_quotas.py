"""Quotas of all tenants, counted together by all processes that share a store."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count

from services.shared.access.quota import (
    GENERATIONS,
    REQUESTS,
    TOKENS,
    Quota,
    Reservation,
    limit_reached,
)
from services.shared.access.quota_settings import RENEWALS
from services.shared.access.quotas import Quotas
from services.shared.access.shared_quotas.answer import Answer, renewing, settling, taking
from services.shared.access.shared_quotas.errand import StoreAway
from services.shared.access.shared_quotas.fallback import Fallback
from services.shared.access.shared_quotas.store_link import SharedCounts, StoreLink
from services.shared.access.tenant_limits import TenantLimits
from services.shared.errors import RateLimited, ServiceError

FRESH_S = 0.2
"""For so long what the store said of tokens and places refuses a request without asking it again:
others may give some back. Of requests nothing is given back, only time helps."""

MOST_RENEWED = 256
"""Reservations of one tenant that are renewed with one question."""

NOTHING = ":0:0"
"""A member that puts nothing aside."""


@dataclass(slots=True)
class Lease:
    """A reservation as the store knows it.

    Args:
        tenant: whose.
        member: its name there, and what it holds.
        is_known: it may be there.
        is_granted: it was there.
    """

    tenant: str
    member: str
    is_known: bool = True
    is_granted: bool = False


class SharedQuotas:
    """`TenantQuotas` of several processes. What the store said last is known here too.

    Args:
        own: what is known in this process.
        link: to the store.
        fallback: decides while the store does not.
        name: of this process, like no other's.
        now: the clock of `own`.
    """

    def __init__(
        self,
        own: Quotas,
        link: StoreLink,
        fallback: Fallback,
        name: str,
        now: Callable[[], float],
    ) -> None:
        self._own = own
        self._link = link
        self._fallback = fallback
        self._name = name
        self._now = now
        self._numbers = count(1)
        self._leases: defaultdict[str, dict[str, Lease]] = defaultdict(dict)

    @property
    def counts(self) -> SharedCounts:
        return self._link.counts

    @property
    def is_shared(self) -> bool:
        """Whether the store answers."""
        return self._link.is_up

    @property
    def questions(self) -> Mapping[str, int]:
        counts = self.counts
        return {
            "answered": counts.checks - counts.failures,
            "unanswered": counts.failures,
            "lost": counts.lost,
            "late": counts.late,
        }

    def of(self, tenant: str | None) -> Quota:
        if self._link.is_up:
            return self._own.of(tenant)
        quota = self._own.of(tenant, self._fallback.divided_by)
        quota.forget()
        return quota

    def refusal(self, tenant: str | None) -> ServiceError | None:
        quota = self.of(tenant)
        if not quota.limits.counts:
            return None
        if not self._link.is_up:
            return self._fallback.refusal(quota)
        told_at = quota.told_at
        is_fresh = told_at is not None and self._now() - told_at < FRESH_S
        return quota.refusal() if is_fresh else quota.entry_refusal()

    async def enter(self, tenant: str | None) -> None:
        limits = self._own.limits_of(tenant)
        if tenant is None or limits.requests_per_minute is None:
            return
        try:
            answer = await self._link.ask(taking(tenant, limits, NOTHING, 1))
        except StoreAway:
            self._fallback.enter(self.of(tenant))
        else:
            self._learn(tenant, answer)
            _check(answer, limits)

    @asynccontextmanager
    async def reserve(
        self, tenant: str | None, tokens: int, generations: int
    ) -> AsyncIterator[Reservation]:
        quota = self.of(tenant)
        if tenant is None or not quota.limits.counts:
            with quota.hold(tokens, generations) as reservation:
                yield reservation
            return
        name = f"{self._name}/{next(self._numbers)}"
        lease = Lease(tenant, f"{name}:{tokens}:{generations}")
        used = 0
        try:
            with await self._granted(lease, tokens, generations) as reservation:
                self._leases[tenant][lease.member] = lease
                try:
                    yield reservation
                finally:
                    used = reservation.used
        finally:
            self._end(lease, used)

    async def renew(self, lease_s: float) -> None:
        """Keeps what runs, until it is cancelled."""
        while True:
            await asyncio.sleep(lease_s / RENEWALS)
            if self._link.is_up:
                for tenant, leases in self._leases.items():
                    self._renew(tenant, list(leases.values()))

    def _renew(self, tenant: str, leases: Sequence[Lease]) -> None:
        limits = self._own.limits_of(tenant)
        for at in range(0, len(leases), MOST_RENEWED):
            some = leases[at : at + MOST_RENEWED]
            for lease in some:
                lease.is_known = True
            question = renewing(tenant, limits, tuple(lease.member for lease in some))
            self._link.mention(question, lambda answer: self._learn(tenant, answer))

    async def _granted(
        self, lease: Lease, tokens: int, generations: int
    ) -> AbstractContextManager[Reservation]:
        """Raises RateLimited, and what the fallback does."""
        limits = self._own.limits_of(lease.tenant)
        try:
            answer = await self._link.ask(taking(lease.tenant, limits, lease.member, 0))
        except StoreAway as away:
            lease.is_known = away.is_known
            return self._fallback.reserve(self.of(lease.tenant), tokens, generations)
        lease.is_known = lease.is_granted = answer.done
        if not answer.done:
            self._learn(lease.tenant, answer)
            _check(answer, limits)
        return self._hold(lease.tenant, tokens, generations, answer)

    @contextmanager
    def _hold(
        self, tenant: str, tokens: int, generations: int, answer: Answer
    ) -> Iterator[Reservation]:
        with self.of(tenant).hold(tokens, generations) as reservation:
            self._learn(tenant, answer)
            yield reservation

    def _end(self, lease: Lease, used: int) -> None:
        leases = self._leases[lease.tenant]
        leases.pop(lease.member, None)
        if not leases:
            del self._leases[lease.tenant]
        if not lease.is_known:
            return

        def hear(answer: Answer) -> None:
            self._learn(lease.tenant, answer)
            self._link.counts.late += lease.is_granted and not answer.done

        limits = self._own.limits_of(lease.tenant)
        self._link.tell(settling(lease.tenant, limits, lease.member, used), hear)

    def _learn(self, tenant: str, answer: Answer) -> None:
        self._own.of(tenant).learn(answer.standing)


def _check(answer: Answer, limits: TenantLimits) -> None:
    """Raises RateLimited for a refusal, in the words of a process that counts alone."""
    if answer.done:
        return
    match answer.reached:
        case "requests":
            raise _reached(limits.requests_per_minute, REQUESTS, answer.wait_s)
        case "tokens":
            raise _reached(limits.tokens_per_minute, TOKENS, answer.wait_s)
        case _:
            raise _reached(limits.max_concurrency, GENERATIONS, None)


def _reached(limit: int | None, what: str, wait_s: float | None) -> RateLimited:
    return limit_reached(limit or 0, what, wait_s)
