"""Until when a generation must have ended."""

from __future__ import annotations

from collections.abc import Callable

from services.router.clock import Clock, Timer


class Deadline:
    """Begins when it is made.

    Args:
        timeout_ms: that the generation may take; None without end.
        clock: the router's.

    Attributes:
        at: on the clock; None without end.
    """

    __slots__ = ("_clock", "_timer", "at", "timeout_ms")

    def __init__(self, timeout_ms: int | None, clock: Clock) -> None:
        self.timeout_ms = timeout_ms
        self.at = None if timeout_ms is None else clock.time() + timeout_ms / 1000
        self._clock = clock
        self._timer: Timer | None = None

    def left_ms(self) -> int | None:
        """At least one; None without end."""
        return None if self.at is None else max(1, int((self.at - self._clock.time()) * 1000))

    def watch(self, expire: Callable[[], None]) -> None:
        """Has `expire` called when the time is over."""
        if self.at is not None:
            self._timer = self._clock.call_at(self.at, expire)

    def forget(self) -> None:
        """It has ended."""
        if self._timer is not None:
            self._timer.cancel()
