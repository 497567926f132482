"""What this engine lends to others: blocks of its pool, found now or computed soon."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

from services.engine.asking import asked
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.copies import Copies, LentBlock
from services.engine.kv.following import Coming, Follower, Following
from services.engine.kv.leases import Lease, Leases
from services.engine.kv.loan_requests import Chain, Fetch, Lookup, Release
from services.engine.kv.loans import Loan, Loans
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import layout_digest
from services.engine.kv.shelf import Region, Shelf
from services.engine.kv.staging import Staging
from services.engine.loop import EngineLoop
from services.shared.errors import DeadlineExceeded, FailedPrecondition, Overloaded

LEASE_BLOCKS = 256
"""Blocks that a fetch keeps from being reused at a time."""

SIGN_S = 1.0
"""How often a reader is told that what it waits for is being computed."""

STALL_S = 30.0
"""A reader that takes nothing for so long is no longer served."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The first `blocks` of a chain.

    Args:
        loan: the lease on them, where one was asked for.
        region: where they can be read from memory, where that was asked for and can be.
    """

    blocks: int
    loan: Loan | None = None
    region: Region | None = None


class Lending:
    """Serves readers on the event loop's thread; their blocks are copied in others.

    Sets the step loop's `after_step`.

    Args:
        stall_s: seconds that a reader may take for what it was given.
        staging: where others read blocks from memory; None where they do not.
        coming: sequences that are not in the scheduler yet; asked on the step loop's thread.

    Attributes:
        incarnation: of this process; another one has another.
    """

    def __init__(
        self,
        loop: EngineLoop,
        memory: BlockMemory,
        layout_id: str,
        rules: PeerSettings,
        stall_s: float = STALL_S,
        *,
        staging: Staging | None = None,
        coming: Coming = tuple,
    ) -> None:
        self.incarnation = secrets.randbits(64)
        self._loop = loop
        self._memory = memory
        self._layout_id = layout_id
        self._layout = layout_digest(layout_id)
        self._shelf = None if staging is None else Shelf(memory, staging, self._layout)
        self._most = rules.fetches
        self._stall_s = stall_s
        leases = Leases(loop.scheduler, loop.command)
        self._following = Following(loop.scheduler, leases, coming)
        self._loans = Loans()
        self._followers: set[Follower] = set()
        self._is_leaving = False
        loop.after_step = self._following.after_step

    def leave(self) -> None:
        """No generation will come any more: who waits for one gets what there is."""
        self._is_leaving = True
        for follower in self._followers:
            follower.is_patient = False
        self._loop.command(self._following.after_step)

    async def lookup(self, lookup: Lookup) -> Found:
        """What of a chain is there now.

        Raises:
            FailedPrecondition: another layout.
            Overloaded: a lease is asked for, and as many readers as may be have one.
        """
        self._check(lookup.chain)
        addresses = lookup.chain.addresses
        if lookup.lease_ms is None:
            pool = self._loop.scheduler.pool
            return Found(blocks=len(await asked(self._loop, partial(pool.match, addresses))))
        with self._follower(Follower(addresses, len(addresses), follows=False)) as follower:
            lease = await self._next(follower)
            if lease is None:
                return Found(blocks=0)
            if lookup.reads_memory and self._shelf is not None:
                return await self._shelved(self._shelf, lookup, lease)
            follower.keep()
            return Found(blocks=len(lease.blocks), loan=self._loans.add(lease, lookup.lease_ms))

    async def fetch(self, fetch: Fetch) -> AsyncGenerator[list[LentBlock], None]:
        """Blocks in order, some at a time; the next are read when these were taken.

        None of them, each second in which a step was made and none came.

        It ends where neither the pool has the next one nor any sequence is to compute it.

        Raises:
            FailedPrecondition: another layout.
            Overloaded: as many readers as may be are served.
            DeadlineExceeded: what was given was not taken in time.
        """
        self._check(fetch.chain)
        follower = Follower(fetch.chain.addresses, LEASE_BLOCKS, follows=True)
        with self._follower(follower), self._waiting(follower, fetch.wait_ms / 1000):
            copies = Copies(self._memory, self._layout)
            async with aclosing(self._leases(follower)) as leases:
                async for lease in leases:
                    if lease is None:
                        yield []
                        continue
                    first = follower.at - len(lease.blocks)
                    addresses = fetch.chain.addresses[first : follower.at]
                    for portion in copies.portions(len(addresses)):
                        read = partial(copies.read, lease, addresses, first, portion)
                        blocks = await asyncio.to_thread(read)
                        with self._impatient(follower):
                            yield blocks

    async def _shelved(self, shelf: Shelf, lookup: Lookup, lease: Lease) -> Found:
        """A loan of copies; the blocks themselves are free when these are made."""
        slots = shelf.lend(len(lease.blocks))
        if slots is None or lookup.lease_ms is None:
            return Found(blocks=0)
        loan, region = self._loans.add(slots, lookup.lease_ms), None
        try:
            copy = partial(shelf.copied, lease, slots, lookup.chain.addresses)
            region = await asyncio.to_thread(copy)
        finally:
            if region is None:
                self._loans.release(loan.id)
        return Found(blocks=len(slots.blocks), loan=loan, region=region)

    def release(self, release: Release) -> bool:
        """Ends a lease and tells whether it still held."""
        return release.incarnation == self.incarnation and self._loans.release(release.lease_id)

    def _check(self, chain: Chain) -> None:
        if chain.kv_layout_id != self._layout_id:
            raise FailedPrecondition(
                f"kv_layout_id must be {self._layout_id!r}, got {chain.kv_layout_id!r}",
                field="kv_layout_id",
            )

    async def _leases(self, follower: Follower) -> AsyncGenerator[Lease | None, None]:
        """What it wants, a lease after the other; None for a second with steps and without one."""
        progress = self._loop.progress
        while True:
            coming = asyncio.ensure_future(self._next(follower))
            try:
                steps = progress.steps
                while not (await asyncio.wait({coming}, timeout=SIGN_S))[0]:
                    if progress.steps != steps:
                        steps = progress.steps
                        yield None
                lease = await coming
            finally:
                coming.cancel()
            if lease is None:
                return
            yield lease

    async def _next(self, follower: Follower) -> Lease | None:
        """A lease on what it wants next; None where it does not come, or nothing is wanted."""
        if follower.at == len(follower.addresses):
            return None
        self._loop.command(partial(self._following.serve, follower))
        return await follower.given()

    @contextmanager
    def _follower(self, follower: Follower) -> Iterator[Follower]:
        """Counts a reader; at the end it has nothing more."""
        if len(self._followers) + len(self._loans) >= self._most:
            raise Overloaded(f"at most {self._most} may read from this engine at a time")
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            follower.close()
            self._loop.command(partial(self._following.forget, follower))

    @contextmanager
    def _waiting(self, follower: Follower, seconds: float) -> Iterator[None]:
        """For so long, a sequence may come that computes what the follower wants."""
        follower.is_patient = seconds > 0 and not self._is_leaving

        def hurry() -> None:
            follower.is_patient = False
            self._loop.command(self._following.after_step)

        timer = asyncio.get_running_loop().call_later(seconds, hurry)
        try:
            yield
        finally:
            timer.cancel()

    @contextmanager
    def _impatient(self, follower: Follower) -> Iterator[None]:
        """One who does not take what it was given in time loses its place and its blocks."""

        def expel() -> None:
            self._followers.discard(follower)
            follower.close()

        timer = asyncio.get_running_loop().call_later(self._stall_s, expel)
        try:
            yield
        finally:
            timer.cancel()
        if follower not in self._followers:
            raise DeadlineExceeded(f"nothing was taken for {self._stall_s:g} s")
