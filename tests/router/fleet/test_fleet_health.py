"""What the fleet does with the health of its replicas: shares, sweeps, evacuation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.router.fleet.fleet import SWEEP_S, Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.health import HealthRules
from services.router.fleet.replica import Replica
from services.router.status import Identity, Status
from services.router.total_load import total_load
from services.shared.errors import Code
from services.shared.stream.events import Failed
from services.shared.stream.load import Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

READY = Load(state=ReplicaState.READY)
BROKEN = Failed(code=Code.INTERNAL, message="internal error")


class Swept:
    """A fleet that sweeps by a manual clock; all replicas are up and described."""

    def __init__(self, *names: str, **rules: Any) -> None:
        self.clock = ManualClock()
        self.changes = 0
        self.evacuated: list[str] = []
        health = HealthRules(**rules)
        self.fleet = Fleet(self.clock, FleetRules(health=health), self._changed)
        self.fleet.evacuate = self.evacuated.append
        for name in names:
            self.fleet.add(Replica(name, ScriptedSource()))
            self.join(name)
        self.fleet.start()

    def join(self, name: str, identity: Identity = IDENTITY) -> None:
        self.fleet.tell_load(name, READY)
        self.fleet.tell_identity(name, identity)

    def pass_time(self, seconds: float, *heard: str) -> None:
        """Time passes sweep by sweep; those named go on telling their load."""
        for _ in range(round(seconds / SWEEP_S)):
            for name in heard:
                self.fleet.tell_load(name, READY)
            self.clock.pass_time(SWEEP_S)

    def fail(self, *names: str) -> None:
        for name in names:
            for _ in range(3):
                self.fleet[name].tell_failure(self.clock.time(), BROKEN)

    def statuses(self) -> dict[str, Status]:
        return {replica.name: replica.status for replica in self.fleet}

    def _changed(self) -> None:
        self.changes += 1


def test_time_alone_makes_a_silent_replica_degraded_and_stuck_and_tells_it() -> None:
    bed = Swept("a", "b")
    bed.changes = 0
    bed.pass_time(2.25, "b")
    assert bed.statuses() == {"a": Status.DEGRADED, "b": Status.READY}
    bed.pass_time(3, "b")
    assert bed.statuses() == {"a": Status.STUCK, "b": Status.READY}
    assert bed.changes == 2
    assert bed.fleet.ready() == ["b"]
    assert bed.fleet.members() == ["b"]
    assert bed.fleet.loads() == [READY]
    bed.pass_time(1, "a", "b")
    assert bed.statuses() == {"a": Status.READY, "b": Status.READY}


def test_breaches_of_the_protocol_that_no_generation_bears_count_too() -> None:
    bed = Swept("a", "b")
    for _ in range(3):
        bed.fleet.tell_fault("a", "events for a stream that was never begun")
    assert bed.statuses() == {"a": Status.EJECTED, "b": Status.READY}
    bed.fleet.tell_fault("unknown", "it has just been removed")


def test_a_stop_ends_the_sweeps() -> None:
    bed = Swept("a")
    bed.fleet.stop()
    bed.pass_time(9)
    assert bed.statuses() == {"a": Status.READY}


def test_a_pause_of_the_router_itself_is_no_silence_of_its_replicas(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bed = Swept("a")
    bed.clock.pass_time(60)
    assert bed.statuses() == {"a": Status.READY}
    assert "the router stood still for 59.8 s" in caplog.text
    bed.pass_time(5.5)
    assert bed.statuses() == {"a": Status.STUCK}


def test_generations_of_a_stuck_replica_are_moved_while_another_can_take_them() -> None:
    bed = Swept("a", "b")
    bed.fleet["a"].running = 2
    bed.pass_time(5, "b")
    assert bed.evacuated == []
    bed.pass_time(0.25, "b")
    assert bed.evacuated == ["a"]
    bed.fleet["a"].running = 0
    bed.pass_time(1, "b")
    assert bed.evacuated == ["a"]


@pytest.mark.parametrize("by_operator", [True, False])
def test_generations_of_a_draining_replica_are_moved(*, by_operator: bool) -> None:
    bed = Swept("a", "b")
    bed.fleet["a"].running = 1
    if by_operator:
        bed.fleet.drain("a")
    else:
        bed.fleet.tell_load("a", Load(state=ReplicaState.DRAINING))
    assert bed.evacuated == []
    bed.pass_time(0.25)
    assert bed.evacuated == ["a"]


def test_generations_of_a_router_that_has_no_replicas_left_are_moved() -> None:
    bed = Swept("a", "b")
    bed.fleet["a"].running = 1
    bed.fleet.tell_load("a", Load(state=ReplicaState.STARTING))
    bed.pass_time(0.25)
    assert bed.evacuated == ["a"]


def test_where_no_other_can_take_them_they_stay() -> None:
    bed = Swept("a", "b", "c")
    bed.fleet["a"].running = 1
    bed.fleet.set_weight("b", 0)
    bed.fleet.tell_load("c", None)
    bed.fleet.drain("a")
    bed.pass_time(1, "b")
    assert bed.evacuated == []
    bed.fleet.set_weight("b", 1)
    bed.pass_time(0.25, "b")
    assert bed.evacuated == ["a"]


def test_no_more_than_the_share_are_ejected_others_are_degraded() -> None:
    bed = Swept("a", "b", "c", "d", "e")
    bed.fail("a", "b", "c")
    assert bed.statuses() == {
        "a": Status.EJECTED,
        "b": Status.EJECTED,
        "c": Status.DEGRADED,
        "d": Status.READY,
        "e": Status.READY,
    }
    assert bed.fleet["c"].reason == "failures, and too many are ejected"
    bed.fleet["c"].tell_success(bed.clock.time())
    assert bed.statuses()["c"] is Status.READY


def test_a_lone_replica_is_never_ejected() -> None:
    bed = Swept("a")
    bed.fail("a")
    assert bed.statuses() == {"a": Status.DEGRADED}


def test_a_share_of_nothing_ejects_none_and_of_all_ejects_all() -> None:
    bed = Swept("a", "b", max_ejected_share=0)
    bed.fail("a", "b")
    assert set(bed.statuses().values()) == {Status.DEGRADED}
    bed = Swept("a", "b", max_ejected_share=1)
    bed.fail("a", "b")
    assert set(bed.statuses().values()) == {Status.EJECTED}


def test_when_others_have_gone_those_ejected_last_are_needed_again() -> None:
    bed = Swept("a", "b", "c", "d")
    bed.fail("a")
    bed.pass_time(0.25)
    bed.fail("b")
    assert bed.statuses()["b"] is Status.EJECTED
    bed.fleet.tell_load("c", None)
    bed.pass_time(0.25, "d")
    assert bed.statuses() == {
        "a": Status.EJECTED,
        "b": Status.DEGRADED,
        "c": Status.GONE,
        "d": Status.READY,
    }


def test_an_ejected_replica_that_came_back_as_another_session_is_still_ejected() -> None:
    bed = Swept("a", "b")
    bed.fail("a")
    bed.fleet.tell_load("a", None)
    bed.join("a")
    assert bed.statuses()["a"] is Status.EJECTED


def test_a_router_of_which_one_engine_is_stuck_is_not_stuck_to_its_parent() -> None:
    child, parent = Swept("stuck", "going"), Swept("child", "other")
    for _ in range(24):
        child.fleet.tell_load("stuck", replace(READY, running=1, progress_age_ms=9000))
        child.fleet.tell_load("going", replace(READY, running=1, progress_age_ms=10))
        parent.fleet.tell_load("child", total_load(ReplicaState.READY, child.fleet.loads()))
        child.clock.pass_time(SWEEP_S)
        parent.clock.pass_time(SWEEP_S)
    assert child.statuses() == {"stuck": Status.STUCK, "going": Status.READY}
    assert parent.statuses()["child"] is Status.READY


def test_a_lie_is_named_once_while_it_is_told(caplog: pytest.LogCaptureFixture) -> None:
    bed = Swept("a")
    lie = replace(READY, free_blocks=11, total_blocks=10)
    for _ in range(5):
        bed.fleet.tell_load("a", lie)
    told = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert told == ["a tells a load that cannot be: 11 free and cached of 10 blocks"]
    assert bed.fleet.loads() == []
