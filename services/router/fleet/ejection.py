"""A replica that fails too often in a row: its strikes, and how long it takes nothing."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """What went wrong; a success of the same kind wipes it out."""

    FAILURE = "failures"
    SLOW = "slow first tokens"
    FLAP = "sessions that did not last"
    PROBE = "failed probes"


class Ejection:
    """Counts strikes, and ejects at `threshold` in a row of one kind.

    An ejection lasts `first_s` seconds, each further one twice as long up to `longest_s`; a good
    time of `longest_s` makes it short again. When its time is over the replica is half open: the
    next probe brings it back or ejects it for longer.

    Attributes:
        until: when the time of the ejection is over; None while not ejected.
        since: when it was ejected last.
        cause: why it was ejected last.
        spared: it would be ejected, were not too many others; any success ends this.
    """

    def __init__(self, threshold: int, first_s: float, longest_s: float) -> None:
        self._threshold = threshold
        self._first_s = first_s
        self._longest_s = longest_s
        self._strikes: dict[Cause, int] = {}
        self._times = 0
        self._returned = float("-inf")
        self.until: float | None = None
        self.since = float("-inf")
        self.cause: Cause | None = None
        self.spared = False

    def strikes(self, cause: Cause) -> int:
        """So many in a row."""
        return self._strikes.get(cause, 0)

    def strike(self, cause: Cause, now: float) -> None:
        """Something went wrong at the replica."""
        if self.until is not None:  # what still runs there says nothing new, its last probe does
            if cause is Cause.PROBE and self.half_open(now):
                self._eject(cause, now)
            return
        self._strikes[cause] = self.strikes(cause) + 1
        if self._strikes[cause] >= self._threshold:
            self._eject(cause, now)

    def wipe(self, *causes: Cause) -> None:
        """What was counted of these kinds was no row."""
        for cause in causes:
            self._strikes.pop(cause, None)

    def spare(self) -> None:
        """Too many are ejected already: this one is not."""
        self.until = None
        self._times -= 1
        self.spared = True

    def half_open(self, now: float) -> bool:
        """Whether its time is over and a probe decides."""
        return self.until is not None and now >= self.until

    def restore(self, now: float) -> None:
        """It has passed a probe; one that was sent before the ejection says nothing about it."""
        if self.until is not None:
            if not self.half_open(now):
                return
            self.until = None
            self._returned = now
        self.spared = False
        self.wipe(Cause.PROBE)

    def _eject(self, cause: Cause, now: float) -> None:
        if now - self._returned >= self._longest_s and self.until is None:
            self._times = 0
        self._strikes.clear()
        self.until = now + min(self._first_s * 2**self._times, self._longest_s)
        self.since = now
        self.cause = cause
        self.spared = False
        self._times += 1
