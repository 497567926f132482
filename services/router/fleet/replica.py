"""One replica as the router sees it: what it told, and what is on its way to it."""

from __future__ import annotations

from collections.abc import Callable

from services.router.demand import Lane
from services.router.fleet.health import Health, HealthRules
from services.router.status import Identity, Role, Status, Verdict
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import TokenSource

BLAMED = (Code.UNAVAILABLE, Code.INTERNAL, Code.DATA_LOSS, Code.UNKNOWN)
"""Failures that are the replica's fault, not the caller's, nor that it is full."""

_SAID = {ReplicaState.DRAINING: Status.DRAINING, ReplicaState.STARTING: Status.STARTING}


class Replica:
    """The state of one replica; only the event loop's thread touches it.

    Attributes:
        epoch: counts its sessions; what came by an earlier one is of no meaning any more.
        load: as last told; None while its session is down.
        identity: as described in this session; None until then.
        status: as judged last, by the fleet that it is in.
        reason: why, for people.
        running: our generations there.
        outstanding_tokens: of these, still to compute or to come.
        pending: of these, by lane, of prompts whose first token has not come.
        assigned: generations that it was given, ever.
        weight: its share of new generations against the others'; 0 takes nothing new.
        lanes: lengths of prompts that it takes.
        looped: in this session, it was seen to lead back to this router.
        drained: an operator wants it to take nothing.
    """

    def __init__(
        self,
        name: str,
        session: TokenSource,
        *,
        weight: float = 1.0,
        lanes: frozenset[Lane] = frozenset(Lane),
    ) -> None:
        self.name = name
        self.session = session
        self.weight = weight
        self.lanes = lanes
        self.drained = False
        self.looped = False
        self.epoch = 0
        self.load: Load | None = None
        self.identity: Identity | None = None
        self.status = Status.GONE
        self.reason = "it was not reached yet"
        self.health = Health(HealthRules())
        self.running = 0
        self.outstanding_tokens = 0
        self.pending = dict.fromkeys(Lane, 0)
        self.assigned = 0
        self._of_others = 0
        self._memory_used: float | None = None
        self._judge: Callable[[Replica], None] = _unjudged

    def join(self, rules: HealthRules, judge: Callable[[Replica], None]) -> None:
        """It is in a fleet that has rules and judges it when something goes wrong."""
        self.health = Health(rules)
        self._judge = judge

    def leave(self) -> None:
        """It is in no fleet any more."""
        self._judge = _unjudged

    def tell_load(self, load: Load | None, now: float) -> None:
        """Takes a load that came, or None when the session went down."""
        if load is None:
            self.identity = None
            self.health.went_down(now)
        else:
            if self.load is None:
                self.epoch += 1
                self.looped = False
                self.health.came_up(now)
            elif self.load.description_revision != load.description_revision:
                self.identity = None  # until it has described itself again
            self.health.hear(load, now)
            self._of_others = max(0, load.outstanding_tokens - self.outstanding_tokens)
            self._memory_used = _memory_used(load)
        self.load = load

    def tell_loop(self) -> None:
        """It leads back to this router: as long as this session lasts it is nobody's replica."""
        self.looped = True
        self.identity = None

    def tell_first_token(self, now: float, waited_s: float) -> None:
        """A generation began there, so long after it was sent."""
        self.health.first_token(now, waited_s)
        self._judge(self)

    def tell_success(self, now: float) -> None:
        """A generation ended there as it should."""
        self.health.success(now)
        self._judge(self)

    def tell_failure(self, now: float, failed: Failed) -> None:
        """A generation failed there; what a lost session took with it counts with the session."""
        draining = self.load is None or self.load.state is ReplicaState.DRAINING
        if failed.code in BLAMED and not draining:
            self.health.failure(now)
            self._judge(self)

    def tell_probe(self, now: float, *, passed: bool) -> None:
        """A probe of this session ended."""
        self.health.probed(now, passed=passed)
        self._judge(self)

    @property
    def expected_tokens(self) -> int | None:
        """Tokens before a new generation: ours by our own count, others' by the last load.

        None when that is too old or cannot be true.
        """
        if not self.health.load_is_known:
            return None
        return self.outstanding_tokens + self._of_others

    @property
    def role(self) -> Role:
        """What it is for, as it says."""
        return Role.BOTH if self.identity is None else self.identity.role

    @property
    def refuses(self) -> bool:
        """Whether it says that it takes no new generation now."""
        return self.load is not None and self.load.refusing

    @property
    def pending_tokens(self) -> int:
        """Of ours, of prompts whose first token has not come."""
        return sum(self.pending.values())

    @property
    def memory_used(self) -> float | None:
        """Share of its memory in use, NVML's or its blocks'; None when neither is known."""
        return self._memory_used if self.health.load_is_known else None

    def verdict(self, now: float) -> Verdict:
        """What is to be thought of it, given that it serves what the fleet does."""
        load = self.load
        if load is None:
            return Verdict(Status.GONE, "it is not connected")
        if self.looped:
            return Verdict(Status.LOOPED, "")
        if self.identity is None:
            return Verdict(Status.STARTING, "it has not described itself yet")
        if self.drained:
            return Verdict(Status.DRAINING, "drained by an operator")
        if load.state in _SAID:
            return Verdict(_SAID[load.state], "it says so")
        return self.health.verdict(now)


def _memory_used(load: Load) -> float | None:
    """The larger share: a pool that was taken whole at the start hides its use from the device."""
    memory, shares = load.device_memory, []
    if memory is not None and memory.total_bytes:
        shares.append(memory.used_bytes / memory.total_bytes)
    if load.total_blocks:
        shares.append(1 - (load.free_blocks + load.cached_blocks) / load.total_blocks)
    return max(shares, default=None)


def _unjudged(_: Replica) -> None:
    """A replica outside of a fleet."""
