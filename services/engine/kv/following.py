"""Fetches that go on while a sequence of this engine computes what they want next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from services.engine import sequence as state
from services.engine.kv.leases import Lease, Leases
from services.engine.scheduler import Scheduler

Coming = Callable[[], Iterable[state.Sequence]]


@dataclass(frozen=True, slots=True)
class Source:
    """Who computes a chain: its block `offset + n` is the chain's block `n`."""

    sequence: state.Sequence
    offset: int


class Follower:
    """One who reads a chain, a lease after the other. Made and used on the event loop's thread.

    Args:
        addresses: of the chain.
        batch: blocks that one lease is on, at most.
        follows: whether it waits for what a live sequence is to compute.

    Attributes:
        at: how many leading blocks it was given; the step loop's thread writes it.
        is_patient: whether it waits for a sequence that may still come.
        source: of what it wants next, if it is known; for the step loop's thread.
    """

    def __init__(self, addresses: Sequence[bytes], batch: int, *, follows: bool) -> None:
        self.addresses = addresses
        self.batch = batch
        self.follows = follows
        self.at = 0
        self.is_patient = False
        self.source: Source | None = None
        self._home = asyncio.get_running_loop()
        self._given: asyncio.Future[Lease | None] = self._home.create_future()
        self._lease: Lease | None = None
        self._is_closed = False

    def give(self, lease: Lease | None) -> None:
        """What comes next; None: nothing. For the step loop's thread."""
        self._home.call_soon_threadsafe(self._take, lease)

    async def given(self) -> Lease | None:
        """Waits for `give`. It ends when something else is given, and by `close`."""
        lease = await self._given
        self._given = self._home.create_future()
        return lease

    def keep(self) -> None:
        """The lease that it has is somebody else's to end."""
        self._lease = None

    def close(self) -> None:
        """Ends the lease that it has, and any that is still on its way."""
        self._is_closed = True
        if self._lease is not None:
            self._lease.end()

    def _take(self, lease: Lease | None) -> None:
        if self._lease is not None:
            self._lease.end()
        self._lease = lease
        if self._is_closed:
            self.close()
        elif not self._given.done():
            self._given.set_result(lease)


class Following:
    """Gives followers what they want next as soon as it is there. On the step loop's thread.

    Args: coming: sequences that are not in the scheduler yet and soon will be.
    """

    def __init__(self, scheduler: Scheduler, leases: Leases, coming: Coming = tuple) -> None:
        self._scheduler = scheduler
        self._leases = leases
        self._coming = coming
        self._waiting: list[Follower] = []

    def serve(self, follower: Follower) -> None:
        """A command: gives it a lease on what it wants next, now or when it is computed.

        It wants something, and has got what it was given before.
        """
        if not self._is_served(follower):
            self._waiting.append(follower)

    def forget(self, follower: Follower) -> None:
        """A command: it wants nothing any more."""
        if follower in self._waiting:
            self._waiting.remove(follower)

    def after_step(self) -> None:
        """Gives what the step has computed; tells those for whom nothing comes any more."""
        if self._waiting:
            self._waiting = [each for each in self._waiting if not self._is_served(each)]

    def _is_served(self, follower: Follower) -> bool:
        wanted = follower.addresses[follower.at : follower.at + follower.batch]
        found = self._scheduler.pool.match(wanted)
        if not found and self._may_come(follower):
            return False
        lease = self._leases.grant(found)
        if lease is not None:
            follower.at += len(lease.blocks)
        follower.give(lease)
        return True

    def _may_come(self, follower: Follower) -> bool:
        if follower.is_patient:
            return True
        if not follower.follows:
            return False
        if follower.source is None or not self._computes(follower, follower.source):
            follower.source = self._source(follower)
        return follower.source is not None

    def _source(self, follower: Follower) -> Source | None:
        """A sequence that is to compute what the follower wants next."""
        address = follower.addresses[follower.at]
        for sequence in chain(self._scheduler, self._coming()):
            if not sequence.generation.cache.write:
                continue
            addresses = sequence.full_addresses(self._scheduler.pool.size)
            if address in addresses:
                source = Source(sequence, addresses.index(address) - follower.at)
                if self._computes(follower, source):
                    return source
        return None

    def _computes(self, follower: Follower, source: Source) -> bool:
        """Whether its next block is before the sequence still, which lives."""
        sequence, index = source.sequence, source.offset + follower.at
        if not sequence.published <= index < len(sequence.addresses):
            return False
        if sequence.addresses[index] != follower.addresses[follower.at]:
            return False
        return any(each is sequence for each in chain(self._scheduler, self._coming()))
