"""Leases that others hold by name, until they give them back or time is over."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass

from services.engine.kv.leases import Lease


@dataclass(frozen=True, kw_only=True, slots=True)
class Loan:
    """A lease by name; it ends after `expires_ms` milliseconds from its beginning."""

    id: int
    expires_ms: int


class Loans:
    """On the event loop's thread."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._held: dict[int, tuple[Lease, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def add(self, lease: Lease, expires_ms: int) -> Loan:
        loan = Loan(id=next(self._ids), expires_ms=expires_ms)
        home = asyncio.get_running_loop()
        timer = home.call_later(expires_ms / 1000, self.release, loan.id)
        self._held[loan.id] = (lease, timer)
        return loan

    def release(self, loan_id: int) -> bool:
        """Ends a lease, and tells whether it still held."""
        lease, timer = self._held.pop(loan_id, (None, None))
        if lease is None or timer is None:
            return False
        timer.cancel()
        return lease.end()
