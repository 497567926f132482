"""How fast the fleet takes what waits."""

from __future__ import annotations

from math import exp

from services.router.clock import Clock

TIME_CONSTANT_S = 20.0
"""What is longer ago than this counts little."""


class ServiceRate:
    """Tokens per second of what went while something waited, the latest weighing most.

    Time in which nothing waits does not count: the fleet could have taken more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None
        self._tokens = 0.0
        self._seconds = 0.0

    def wait(self) -> None:
        """Something waits from now on."""
        self._since = self._clock.time()

    def rest(self) -> None:
        """Nothing waits any more."""
        self._pass()
        self._since = None

    def serve(self, tokens: int) -> None:
        """So many tokens went."""
        if self._since is not None:
            self._pass()
            self._tokens += tokens

    def per_s(self, watched_s: float = 0.0) -> float | None:
        """None while nothing was seen, or for less than `watched_s` seconds."""
        self._pass()
        if not self._tokens or not self._seconds or self._seconds < watched_s:
            return None
        return self._tokens / self._seconds

    def _pass(self) -> None:
        if self._since is None:
            return
        now = self._clock.time()
        kept = exp((self._since - now) / TIME_CONSTANT_S)
        self._tokens *= kept
        self._seconds = self._seconds * kept + TIME_CONSTANT_S * (1 - kept)
        self._since = now
