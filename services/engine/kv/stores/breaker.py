"""A node that has failed is left alone for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

FAILURES = 3
"""So many in a row, and the node rests."""

FIRST_REST_S = 1.0
LONGEST_REST_S = 15.0
"""Each rest is twice as long as the one before, up to this."""


class Breaker:
    """Says whether a node may be asked; for any thread.

    After FAILURES in a row it says no for FIRST_REST_S; then it lets one through, to try, and says
    no for twice the time, unless that one succeeds.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._failures = 0
        self._rest_s = FIRST_REST_S
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the node rests, or is tried by one."""
        return self._failures >= FAILURES

    def admits(self) -> bool:
        """Whether to ask now. Who is admitted tells by `succeeded` or `failed` how it went."""
        with self._lock:
            if self._failures < FAILURES:
                return True
            now = self._clock()
            if now < self._until:
                return False
            # Whoever comes while this one tries waits for the next turn.
            self._rest_s = min(2 * self._rest_s, LONGEST_REST_S)
            self._until = now + self._rest_s
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures = 0
            self._rest_s = FIRST_REST_S

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._failures == FAILURES:
                self._until = self._clock() + self._rest_s
