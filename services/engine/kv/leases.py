"""Leases on blocks of the pool: what is being read stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from threading import Lock

from services.engine.scheduler import Scheduler


class LeaseEnded(Exception):
    """A read that was to begin after the end of its lease."""


class Lease:
    """Keeps blocks until it has ended and nobody reads them any more. For any thread.

    Args:
        let_go: called once, by the thread that ends it or that reads last.
    """

    def __init__(self, blocks: Sequence[int], let_go: Callable[[], None]) -> None:
        self.blocks = blocks
        self._let_go = let_go
        self._lock = Lock()
        self._readers = 0
        self._has_ended = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """The blocks stay as they are inside, whatever becomes of the lease meanwhile.

        Raises:
            LeaseEnded: before anything is read.
        """
        with self._lock:
            if self._has_ended:
                raise LeaseEnded
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1
                is_over = self._has_ended and not self._readers
            if is_over:
                self._let_go()

    def end(self) -> bool:
        """No read begins any more. Tells whether it still held."""
        with self._lock:
            held = not self._has_ended
            self._has_ended = True
            is_over = held and not self._readers
        if is_over:
            self._let_go()
        return held


class Leases:
    """Gives leases, on the step loop's thread.

    Args:
        command: has the step loop call something between two steps; for any thread.
    """

    def __init__(self, scheduler: Scheduler, command: Callable[[Callable[[], None]], None]) -> None:
        self._scheduler = scheduler
        self._command = command

    def grant(self, found: Sequence[int]) -> Lease | None:
        """A lease on these blocks, or on as many of the first as leave running sequences room.

        None if it would be on none.
        """
        pool = self._scheduler.pool
        blocks = list(takewhile(self._keep, found))
        if not blocks:
            return None
        return Lease(blocks, partial(self._command, partial(pool.end_lease, blocks)))

    def _keep(self, block: int) -> bool:
        """Leases it, unless it is cached and a running sequence may soon need its room."""
        pool = self._scheduler.pool
        before = pool.available
        pool.lease([block])
        if pool.available < before <= len(self._scheduler.running):
            pool.end_lease([block])
            return False
        return True
