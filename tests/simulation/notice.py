"""Whether a router notices in time that a replica is silent, or makes no progress."""

from __future__ import annotations

from services.router.fleet.health import HealthRules
from services.router.status import TAKING, Status
from tests.simulation.engine_host import EngineHost
from tests.simulation.front import Replica
from tests.simulation.judge import Judge
from tests.simulation.replica_figures import ReplicaFigures
from tests.simulation.session import Session

SWEEP_S = 0.25
"""How often the fleet looks at the time."""

HEARTBEAT_S = 1.0
"""How often a replica that lives says so, at least."""

SLACK_S = 0.2


class Notice:
    """The times within which a replica must be known as degraded, then as stuck."""

    def __init__(self, rules: HealthRules, judge: Judge) -> None:
        self._rules = rules
        self._judge = judge

    def check(self, figures: ReplicaFigures, session: Session, host: Replica, now: float) -> None:
        if figures.status not in TAKING or not session.is_up:
            return
        idle_s = max(now - session.heard_at, self._without_step(host, session, now))
        status = figures.status
        if idle_s > self._rules.stuck_after_s + SWEEP_S + SLACK_S or (
            status == Status.READY and idle_s > self._rules.degraded_after_s + SWEEP_S + SLACK_S
        ):
            text = f"{host.name} is {status} after {idle_s:.2f} s without a sign"
            self._judge.broken("a death is noticed in time", text)

    def _without_step(self, host: Replica, session: Session, now: float) -> float:
        """Since its last step, less what a heartbeat may be behind; 0 where none could tell."""
        if not isinstance(host, EngineHost) or host.process is None or host.honest_since is None:
            return 0.0
        late_s = HEARTBEAT_S + SLACK_S
        if now - session.heard_at > late_s or now - host.honest_since < late_s:
            return 0.0
        return host.process.parts.steps.progress.age_ms / 1000 - late_s
