"""Health as progress: what a replica's heartbeat, its failures and its probes make of it."""

from __future__ import annotations

from dataclasses import dataclass

from services.router.fleet.ejection import Cause, Ejection
from services.router.status import Status, Verdict
from services.shared.bounds import at_least, within
from services.shared.stream.load import Load

HEARTBEAT_S = 1.0
"""A session brings a load at least this often."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthRules:
    """When a replica is judged how; seconds, counts and a share.

    Args:
        degraded_after_s: without a step while work waits, or without a word.
        stuck_after_s: the same, until its generations are moved.
        load_valid_s: an older load is unknown.
        slow_first_token_s: a first token that takes longer is a strike.
        steady_after_s: a session that ends sooner is a strike.
        ejection_threshold: strikes in a row.
        ejection_s: how long the first ejection lasts; each further one twice as long.
        max_ejection_s: the longest; a good time of this length begins anew.
        max_ejected_share: of the replicas that are described; others are degraded instead.
        probe_interval_s: without traffic until a replica is probed.
        probe_timeout_s: a probe that takes longer has failed.
    """

    degraded_after_s: float = 2.0
    stuck_after_s: float = 5.0
    load_valid_s: float = 3.0
    slow_first_token_s: float = 30.0
    steady_after_s: float = 5.0
    ejection_threshold: int = 3
    ejection_s: float = 5.0
    max_ejection_s: float = 300.0
    max_ejected_share: float = 0.5
    probe_interval_s: float = 10.0
    probe_timeout_s: float = 10.0

    def __post_init__(self) -> None:
        at_least("degraded_after_s", self.degraded_after_s, 1.5 * HEARTBEAT_S)
        at_least("stuck_after_s", self.stuck_after_s, self.degraded_after_s)
        at_least("load_valid_s", self.load_valid_s, 1.5 * HEARTBEAT_S)
        within("slow_first_token_s", self.slow_first_token_s, 0.001, 3600)
        within("steady_after_s", self.steady_after_s, 0, 3600)
        within("ejection_threshold", self.ejection_threshold, 1, 1000)
        within("ejection_s", self.ejection_s, 0.1, 3600)
        within("max_ejection_s", self.max_ejection_s, self.ejection_s, 86400)
        within("max_ejected_share", self.max_ejected_share, 0, 1)
        within("probe_interval_s", self.probe_interval_s, 0.5, 3600)
        within("probe_timeout_s", self.probe_timeout_s, 0.1, 3600)


class Health:
    """The health of one replica; it is told what happened and when, on one clock.

    Attributes:
        ejection: the replica's strikes and what follows from them.
        heard_at: when its last load came.
        sign_at: when it last showed that it can generate, or came up.
        load_is_known: whether the last load is young enough and can be true.
        complaint: why the last load cannot be true; None where it can.
    """

    def __init__(self, rules: HealthRules) -> None:
        self._rules = rules
        self.ejection = Ejection(rules.ejection_threshold, rules.ejection_s, rules.max_ejection_s)
        self.heard_at = float("-inf")
        self.sign_at = float("-inf")
        self.load_is_known = False
        self.complaint: str | None = None
        self._up_since = float("-inf")
        self._progress_age_s = 0.0

    def came_up(self, now: float) -> None:
        """Its session brought the first load."""
        self._up_since = self.sign_at = now

    def hear(self, load: Load, now: float) -> None:
        """A load came."""
        self.heard_at = now
        self.complaint = contradiction(load)
        self.load_is_known = self.complaint is None
        self._progress_age_s = load.progress_age_ms / 1000

    def went_down(self, now: float) -> None:
        """Its session ended."""
        self.load_is_known = False
        if now - self._up_since < self._rules.steady_after_s:
            self.ejection.strike(Cause.FLAP, now)
        else:
            self.ejection.wipe(Cause.FLAP)

    def first_token(self, now: float, waited_s: float) -> None:
        """A generation began there, so long after it was sent."""
        self.sign_at = now
        if waited_s > self._rules.slow_first_token_s:
            self.ejection.strike(Cause.SLOW, now)
        else:
            self.ejection.wipe(Cause.SLOW, Cause.PROBE)

    def success(self, now: float) -> None:
        """A generation ended as it should."""
        self.sign_at = now
        self.ejection.spared = False
        self.ejection.wipe(Cause.FAILURE, Cause.PROBE)

    def failure(self, now: float) -> None:
        """A generation failed by its fault."""
        self.ejection.strike(Cause.FAILURE, now)

    def probed(self, now: float, *, passed: bool) -> None:
        """A probe ended."""
        if passed:
            self.sign_at = now
            self.ejection.restore(now)
        else:
            self.ejection.strike(Cause.PROBE, now)

    def excuse(self, now: float, seconds: float) -> None:
        """For so long nobody listened: that nothing was heard is not the replica's fault."""
        self.heard_at = min(now, self.heard_at + seconds)

    def verdict(self, now: float) -> Verdict:
        """What is to be thought of a replica that is up, described and says that it is ready."""
        silent_s = now - self.heard_at
        self.load_is_known = self.complaint is None and silent_s <= self._rules.load_valid_s
        if self._progress_age_s:
            idle_s, what = self._progress_age_s + silent_s, "no step with work waiting"
        else:
            idle_s, what = silent_s, "silent"
        if silent_s > self._rules.degraded_after_s:
            what = "silent"
        if idle_s > self._rules.stuck_after_s:
            return Verdict(Status.STUCK, f"{what} for {self._rules.stuck_after_s:g} s")
        if self.ejection.until is not None:
            return Verdict(Status.EJECTED, self._why_ejected(now))
        if idle_s > self._rules.degraded_after_s:
            return Verdict(Status.DEGRADED, f"{what} for {self._rules.degraded_after_s:g} s")
        return self._by_strikes()

    def _by_strikes(self) -> Verdict:
        if self.ejection.spared:
            return Verdict(Status.DEGRADED, f"{self.ejection.cause}, and too many are ejected")
        if self.ejection.strikes(Cause.PROBE):
            return Verdict(Status.DEGRADED, "failed its last probe")
        return Verdict(Status.READY, "")

    def _why_ejected(self, now: float) -> str:
        waits = "a probe decides" if self.ejection.half_open(now) else "its time is not over"
        return f"{self.ejection.cause}; {waits}"


def contradiction(load: Load) -> str | None:
    """Why a load cannot be true; None where it can."""
    known_blocks = load.free_blocks + load.cached_blocks
    memory = load.device_memory
    if known_blocks > load.total_blocks:
        return f"{known_blocks} free and cached of {load.total_blocks} blocks"
    if 0 < load.slots < load.running:
        return f"{load.running} running in {load.slots} slots"
    if memory is not None and max(memory.used_bytes, memory.free_bytes) > memory.total_bytes:
        return (
            f"{memory.used_bytes} bytes used and {memory.free_bytes} free of {memory.total_bytes}"
        )
    return None
