"""What holds of every router, after each step and when faults have ended and time has passed."""

from __future__ import annotations

from math import floor

from services.router.fleet.ejection import Cause
from services.router.status import Status
from tests.simulation.engine_host import EngineHost
from tests.simulation.front import Life
from tests.simulation.judge import Judge
from tests.simulation.notice import SWEEP_S, Notice
from tests.simulation.replica_figures import ReplicaFigures
from tests.simulation.sent import NOTHING, Counts


class RouterInvariants:
    """Those of one router's life."""

    def __init__(self, life: Life, judge: Judge) -> None:
        self._life = life
        self._judge = judge
        self._too_many_since: float | None = None
        self._notice = Notice(life.router.rules.health, judge)
        self._place_empty_since: float | None = None
        self._ejected_at: dict[str, float] = {}

    def check(self) -> None:
        """After each step."""
        figures = list(self._life.router.replicas())
        legs = self._life.legs
        real = legs.counts() if legs.is_settled else None
        legs.check()
        for one in figures:
            self._judge.saw(f"status {one.status}")
            self._check_counts(one, real)
            self._check_status(one)
        self._check_ejected(figures)
        self._check_bounds()
        self._check_places()

    def check_rest(self) -> None:
        """Nothing is left of any generation."""
        router, notes = self._life.router, self._life.notes
        if router.running or router.waiting:
            text = f"{router.running} run and {router.waiting} wait in the router"
            self._judge.broken("nothing is left", text)
        if notes.started != notes.ended.total():
            text = f"{notes.started} started, {dict(notes.ended)} ended"
            self._judge.broken("started = finished + cancelled + failed", text)
        if router.clock.pending():
            text = f"{router.clock.pending()} timers of the router"
            self._judge.broken("nothing is left", text)
        for figures in router.replicas():
            if figures.counts != NOTHING:
                self._judge.broken("nothing is left", f"{figures.name}: {figures.counts}")
        if not self._life.legs.is_empty():
            self._judge.broken("nothing is left", "a generation is at a replica")

    def _check_status(self, figures: ReplicaFigures) -> None:
        session = self._life.sessions.get(figures.name)
        if session is not None:
            host = self._life.hosts[figures.name]
            self._notice.check(figures, session, host, self._life.loop.time())
        since = figures.ejection.since
        was, self._ejected_at[figures.name] = self._ejected_at.get(figures.name, since), since
        if since != was:
            self._check_ejection(figures)

    def _check_ejection(self, figures: ReplicaFigures) -> None:
        """One has just been ejected."""
        if figures.ejection.cause is not None:
            self._judge.saw(f"ejected for {figures.ejection.cause}")
        if figures.ejection.cause is Cause.FAILURE:
            failures = self._life.legs.rows.get((figures.name, figures.ejection.since), 0)
            threshold = self._life.router.rules.health.ejection_threshold
            if failures < threshold:
                text = f"{figures.name} after {failures} failures in a row of {threshold}"
                self._judge.broken("ejected for a row of failures", text)

    def check_known_blocks(self, host: EngineHost) -> None:
        """What the router knows of blocks is what the engine has, once both are at rest."""
        session = self._life.sessions.get(host.name)
        if host.process is not None and session is not None and not session.misses_blocks:
            found = host.process.parts.steps.scheduler.pool._block_at.keys()
            known = self._life.router.known_blocks(host.name)
            if known != found:
                text = f"{host.name}: {len(known - found)} too many, {len(found - known)} missing"
                self._judge.broken("known blocks are the truth", text)

    def _check_counts(self, figures: ReplicaFigures, real: dict[str, Counts] | None) -> None:
        name, counts = figures.name, figures.counts
        if min(counts) < 0:
            self._judge.broken("counts are not negative", f"{name}: {counts}")
        if real is not None and counts != real.get(name, NOTHING):
            text = f"{name}: {counts} are {real.get(name, NOTHING)}"
            self._judge.broken("counts are the truth", text)

    def _check_ejected(self, figures: list[ReplicaFigures]) -> None:
        """When others go, too many may be ejected until the next look."""
        described = [one for one in figures if one.is_described]
        ejected = sum(one.status == Status.EJECTED for one in described)
        share = self._life.router.rules.health.max_ejected_share
        if ejected <= floor(share * len(described) + 1e-9):
            self._too_many_since = None
            return
        now = self._life.loop.time()
        self._too_many_since = since = self._too_many_since or now
        if now - since > SWEEP_S:
            text = f"{ejected} of {len(described)} with a share of {share}"
            self._judge.broken("ejected <= share", text)

    def _check_places(self) -> None:
        """Nobody waits long beside a place that is free."""
        if not self._life.router.waiting or not self._life.router.is_place_empty():
            self._place_empty_since = None
            return
        now = self._life.loop.time()
        self._place_empty_since = since = self._place_empty_since or now
        if now - since > SWEEP_S:
            text = f"one waits beside an idle replica for {now - since:.2f} s"
            self._judge.broken("no place is left empty", text)

    def _check_bounds(self) -> None:
        router, rules = self._life.router, self._life.router.rules
        if router.new_waiting > rules.queue.max_waiting:
            text = f"{router.new_waiting} of at most {rules.queue.max_waiting}"
            self._judge.broken("queue <= bound", text)
        allowed = rules.retry.burst + rules.retry.share * self._life.notes.started
        if self._life.legs.retries > allowed:
            text = f"{self._life.legs.retries} retries of at most {allowed}"
            self._judge.broken("retries <= budget", text)
