"""Which replicas are probed when, and what follows from it."""

from __future__ import annotations

from functools import partial

from services.router.clock import Clock
from services.router.fleet.fleet import Fleet
from services.router.fleet.probe import Probe
from services.router.fleet.replica import Replica
from services.router.fleet.ticks import Ticks
from services.router.status import TAKING, Status

TICK_S = 0.25


class Prober:
    """Probes replicas of which it is not known whether they can generate.

    These are the ejected ones whose time is over, which a probe brings back or ejects for longer,
    and those that gave no sign for an interval: no first token, no end, no token of what runs.
    Probes go beside all callers' streams and count as no traffic.
    """

    def __init__(self, fleet: Fleet, clock: Clock) -> None:
        self._fleet = fleet
        self._clock = clock
        self._rules = fleet.rules.health
        self._watches: dict[str, _Watch] = {}
        self._ticks = Ticks(clock, TICK_S, lambda _: self.tick())

    def start(self) -> None:
        """Probes until `stop`."""
        self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()
        for watch in self._watches.values():
            if watch.probe is not None:
                watch.probe.withdraw()

    def tick(self) -> None:
        """Sends the probes that are due."""
        now = self._clock.time()
        known, self._watches = self._watches, {}
        for replica in self._fleet:
            watch = self._watches[replica.name] = known.get(replica.name) or _Watch()
            watch.look(replica, now)
        for replica in list(self._fleet):
            watch = self._watches[replica.name]
            if watch.probe is None and self._is_due(replica, watch, now):
                watch.probed_at = now
                watch.probe = Probe(replica, partial(self._end, replica, watch))
                watch.probe.send(self._clock, self._rules.probe_timeout_s)

    def _is_due(self, replica: Replica, watch: _Watch, now: float) -> bool:
        if replica.status is Status.EJECTED:
            return replica.health.ejection.half_open(now)
        silent_s = now - max(replica.health.sign_at, watch.probed_at)
        return replica.status in TAKING and silent_s >= self._rules.probe_interval_s

    def _end(self, replica: Replica, watch: _Watch, passed: bool | None) -> None:
        watch.probe = None
        if passed is not None:
            replica.tell_probe(self._clock.time(), passed=passed)


class _Watch:
    """What the prober knows of one replica.

    Attributes:
        probe: that is on its way.
        probed_at: when the last was sent.
    """

    __slots__ = ("_counts", "_outstanding", "probe", "probed_at")

    def __init__(self) -> None:
        self.probe: Probe | None = None
        self.probed_at = float("-inf")
        self._counts = (0, 0)
        self._outstanding = 0

    def look(self, replica: Replica, now: float) -> None:
        """Tokens that came for the same generations since the last look are a sign of life."""
        counts = (replica.assigned, replica.running)
        if counts == self._counts and replica.outstanding_tokens < self._outstanding:
            replica.health.sign_at = now
        self._counts, self._outstanding = counts, replica.outstanding_tokens
