"""Whatever happens in whatever order: the queue is bounded, and each hears one answer."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.router.admission.admission_rules import AdmissionRules
from services.router.demand import Demand, Lane
from services.router.status import TAKING
from services.shared.errors import Overloaded, Unavailable
from tests.router.bureau import Bureau, Visitor, demand

BOUND = 5
WAIT_S = 10.0
NAMES = ("a", "b")
WINDOW = 100
MAX_PROMPT = 150


class QueueHistory(RuleBasedStateMachine):
    """Two replicas that come and go, and generations of three tenants, two classes, two lanes."""

    def __init__(self) -> None:
        super().__init__()
        rules = AdmissionRules(max_waiting=BOUND, wait_for_replica_s=WAIT_S)
        self.bureau = Bureau(NAMES, rules, WINDOW)
        self.visitors: list[Visitor] = []
        self.returning: set[Visitor] = set()
        self.told: list[float | None] = []

    @rule(
        tenant=st.sampled_from(("", "one", "other")),
        prompt=st.integers(1, MAX_PROMPT),
        lane=st.sampled_from(Lane),
        batch=st.booleans(),
        timeout_s=st.none() | st.integers(1, 20),
    )
    def enter(
        self, tenant: str, prompt: int, lane: Lane, batch: bool, timeout_s: int | None
    ) -> None:
        self.come_in(demand(tenant, prompt, lane=lane, batch=batch), timeout_s)

    @rule(prompt=st.integers(1, MAX_PROMPT), failed=st.sampled_from(NAMES))
    def enter_again(self, prompt: int, failed: str) -> None:
        self.come_in(demand("", prompt, avoid=self.avoiding({failed})), None)

    def come_in(self, wanted: Demand, timeout_s: int | None) -> None:
        try:
            visitor = self.bureau.enter(wanted, timeout_s)
        except Overloaded as error:
            self.told.append(error.retry_after_s)
        except Unavailable:
            failed = {name for name, _ in wanted.avoid}
            assert not set(self.up()) - failed
        else:
            self.visitors.append(visitor)

    @rule(
        prompt=st.integers(1, MAX_PROMPT),
        lane=st.sampled_from(Lane),
        failed=st.sets(st.sampled_from(NAMES)),
    )
    def resume(self, prompt: int, lane: Lane, failed: set[str]) -> None:
        visitor = self.bureau.resume(demand("", prompt, lane=lane, avoid=self.avoiding(failed)))
        self.visitors.append(visitor)
        self.returning.add(visitor)

    @precondition(lambda self: any(one.waits for one in self.visitors))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        waiting = [one for one in self.visitors if one.waits]
        self.bureau.leave(data.draw(st.sampled_from(waiting)))

    @precondition(lambda self: self.running())
    @rule(data=st.data(), ends=st.booleans())
    def go_on(self, data: st.DataObject, ends: bool) -> None:
        visitor = data.draw(st.sampled_from(self.running()))
        if ends:
            self.finish(visitor)
        elif visitor.leg is not None and not visitor.leg.begun:
            self.bureau.begin(visitor)

    @rule(name=st.sampled_from(NAMES))
    def die(self, name: str) -> None:
        self.bureau.die(name)
        for visitor in self.running():
            if visitor.leg is not None and visitor.leg.replica.name == name:
                self.finish(visitor)
        self.bureau.admission.pump()

    @rule(name=st.sampled_from(NAMES))
    def come(self, name: str) -> None:
        self.bureau.come(name)
        self.bureau.admission.pump()

    @rule(seconds=st.sampled_from((0.1, 1.0, WAIT_S)))
    def pass_time(self, seconds: float) -> None:
        self.bureau.clock.pass_time(seconds)
        for name in self.up():
            self.bureau.come(name)  # it tells its load again, so that it is not silent
        self.expire()

    def finish(self, visitor: Visitor) -> None:
        visitor.left = True
        self.bureau.finish(visitor)

    def expire(self) -> None:
        for visitor in self.visitors:
            deadline = visitor.deadline
            if visitor.waits and deadline is not None and deadline <= self.bureau.clock.now:
                self.bureau.leave(visitor)

    def avoiding(self, names: set[str]) -> frozenset[tuple[str, int]]:
        return frozenset((name, self.bureau.fleet[name].epoch) for name in names)

    def running(self) -> list[Visitor]:
        return [one for one in self.visitors if one.leg is not None and not one.left]

    def up(self) -> list[str]:
        return [one.name for one in self.bureau.fleet if one.status in TAKING]

    @invariant()
    def the_queue_is_bounded_and_knows_who_waits(self) -> None:
        waiting = [one for one in self.visitors if one.waits]
        assert self.bureau.admission.waiting == len(waiting)
        fresh = [one for one in waiting if one not in self.returning and not one.demand.avoid]
        assert len(fresh) <= BOUND
        assert sum(one not in self.returning for one in waiting) <= 2 * BOUND

    @invariant()
    def who_is_refused_hears_when_to_come_again(self) -> None:
        assert all(after_s is not None and 1 <= after_s <= 60 for after_s in self.told)

    @invariant()
    def nothing_new_waits_while_a_replica_has_nothing_to_do(self) -> None:
        statuses = [one.status for one in self.bureau.fleet]
        best = next((status for status in TAKING if status in statuses), None)
        idle = [one for one in self.bureau.fleet if one.status is best and not one.running]
        assert not idle or not any(
            one.waits and one not in self.returning and not one.demand.avoid
            for one in self.visitors
        )

    def teardown(self) -> None:
        for name in NAMES:
            self.come(name)
        self.bureau.clock.pass_time(0)
        while running := self.running():
            self.finish(running[0])
        self.bureau.clock.pass_time(WAIT_S)
        assert self.bureau.admission.waiting == 0
        assert all(alarm.cancelled for alarm in self.bureau.clock.alarms)
        assert [one.pending for one in self.bureau.fleet] == [dict.fromkeys(Lane, 0)] * len(NAMES)


TestQueueHistory = QueueHistory.TestCase
