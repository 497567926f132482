"""How much each tenant may use, as the doors of a service ask."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from services.shared.access.quota import Quota, Reservation
from services.shared.errors import ServiceError


class TenantQuotas(Protocol):
    """Of this process alone, or shared by several. None is the tenant of who needs no key."""

    @property
    def is_shared(self) -> bool | None:
        """Whether the store that several processes share answers; None without one."""
        ...

    @property
    def questions(self) -> Mapping[str, int]:
        """What came of what was for that store, by result; empty without one."""
        ...

    def of(self, tenant: str | None, /) -> Quota:
        """What is known here of a tenant: its limits, what is left, what runs."""
        ...

    def refusal(self, tenant: str | None, /) -> ServiceError | None:
        """Why a request for the shortest answer would be refused now; None while it may not be."""
        ...

    async def enter(self, tenant: str | None, /) -> None:
        """A request comes. Raises RateLimited or Unavailable where it is refused."""
        ...

    def reserve(
        self, tenant: str | None, tokens: int, generations: int, /
    ) -> AbstractAsyncContextManager[Reservation]:
        """Puts tokens and places aside for as long as the block runs, then settles what was used.

        Args:
            tenant: whose.
            tokens: what the request is expected to come to.
            generations: that it runs at a time.

        Raises:
            RateLimited: they are not there; then nothing was put aside.
            Unavailable: nobody knows whether they are.
        """
        ...
