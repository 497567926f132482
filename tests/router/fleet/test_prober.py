"""Who is probed when, and what a probe decides."""

from __future__ import annotations

import pytest

from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.health import HealthRules
from services.router.fleet.prober import TICK_S, Prober
from services.router.fleet.replica import Replica
from services.router.status import Status
from services.shared.errors import Code, InvalidRequest, Overloaded, Unavailable
from services.shared.stream.events import CancelReason, Failed
from services.shared.stream.generation import PriorityClass
from services.shared.stream.load import Load, ReplicaState
from tests.router.identity import IDENTITY
from tests.router.manual_clock import ManualClock
from tests.scripted_source import ScriptedSource

BROKEN = Failed(code=Code.INTERNAL, message="internal error")


class Probed:
    """Two replicas, "a" and "b", with a prober over them; both keep telling their load."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.fleet = Fleet(self.clock, FleetRules(health=HealthRules()))
        self.sources = {"a": ScriptedSource(), "b": ScriptedSource()}
        for name, source in self.sources.items():
            self.fleet.add(Replica(name, source))
            self.join(name)
        self.prober = Prober(self.fleet, self.clock)
        self.fleet.start()
        self.prober.start()

    @property
    def a(self) -> Replica:
        return self.fleet["a"]

    def status(self) -> Status:
        """Of "a"."""
        return self.a.status

    def join(self, name: str) -> None:
        self.fleet.tell_load(name, Load(state=ReplicaState.READY))
        self.fleet.tell_identity(name, IDENTITY)

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_S)):
            for replica in self.fleet:
                if replica.load is not None:
                    self.fleet.tell_load(replica.name, replica.load)
            self.clock.pass_time(TICK_S)

    def probes(self, name: str = "a") -> int:
        """How many were sent."""
        return len(self.sources[name].submitted)

    def answer(self, name: str = "a") -> None:
        """What is on its way there passes."""
        for _ in range(3):
            self.sources[name].step()

    def eject(self) -> None:
        for _ in range(3):
            self.a.tell_failure(self.clock.time(), BROKEN)
        assert self.a.status is Status.EJECTED


def test_a_probe_is_one_token_of_the_batch_class_that_leaves_no_trace_in_caches() -> None:
    bed = Probed()
    bed.pass_time(10)
    generation = bed.sources["a"].submitted[0].generation
    assert len(generation.prompt_ids) == 1
    assert generation.stopping.max_tokens == 1
    assert generation.quality_of_service.priority_class is PriorityClass.BATCH
    assert generation.quality_of_service.timeout_ms == 10_000
    assert not generation.cache.read
    assert not generation.cache.write
    assert (bed.a.running, bed.a.assigned, bed.a.outstanding_tokens) == (0, 0, 0)


def test_a_replica_without_traffic_is_probed_once_an_interval() -> None:
    bed = Probed()
    bed.pass_time(9.75)
    assert bed.probes() == 0
    bed.pass_time(0.25)
    assert bed.probes() == 1
    bed.answer()
    bed.pass_time(9.75)
    assert bed.probes() == 1
    bed.pass_time(0.25)
    assert bed.probes() == 2


@pytest.mark.parametrize("sign", ["first token", "end"])
def test_traffic_puts_the_probe_off(sign: str) -> None:
    bed = Probed()
    bed.pass_time(9)
    now = bed.clock.time()
    if sign == "end":
        bed.a.tell_success(now)
    else:
        bed.a.tell_first_token(now, 0.1)
    bed.pass_time(9.75)
    assert (bed.probes("a"), bed.probes("b")) == (0, 1)
    bed.pass_time(0.25)
    assert bed.probes("a") == 1


def test_tokens_of_what_runs_put_the_probe_off_and_new_work_does_not() -> None:
    bed = Probed()
    bed.a.running = bed.a.assigned = 1
    bed.a.outstanding_tokens = 100
    bed.pass_time(9)
    bed.a.outstanding_tokens -= 1
    bed.pass_time(9.75)
    assert bed.probes() == 0
    bed.a.running += 1
    bed.a.assigned += 1
    bed.a.outstanding_tokens += 50
    bed.pass_time(0.5)
    assert bed.probes() == 1


def test_a_replica_that_says_ready_and_answers_no_probe_is_degraded_then_ejected() -> None:
    bed = Probed()
    bed.pass_time(10)
    assert bed.probes() == 1
    bed.pass_time(9.75)
    assert bed.status() is Status.READY
    bed.pass_time(0.25)
    assert bed.status() is Status.DEGRADED
    assert bed.sources["a"].cancelled == [("probe", CancelReason.DEADLINE)]
    bed.answer("b")
    bed.pass_time(20.5)
    assert bed.status() is Status.EJECTED
    assert bed.a.reason == "failed probes; its time is not over"


def test_what_waits_at_a_replica_ejected_by_probes_is_moved() -> None:
    bed = Probed()
    moved: list[str] = []
    bed.fleet.evacuate = moved.append
    bed.a.running = 1
    for _ in range(3):
        bed.a.tell_probe(bed.clock.time(), passed=False)
    bed.pass_time(0.25)
    assert moved == ["a"]


def test_an_ejected_replica_comes_back_by_the_probe_after_its_time() -> None:
    bed = Probed()
    bed.eject()
    bed.pass_time(4.75)
    assert bed.probes() == 0
    bed.pass_time(0.25)
    assert bed.probes() == 1
    assert bed.status() is Status.EJECTED
    bed.answer()
    assert bed.status() is Status.READY


@pytest.mark.parametrize("how", ["fails", "is silent", "refuses"])
def test_an_ejected_replica_that_fails_its_probe_is_ejected_for_longer(how: str) -> None:
    bed = Probed()
    bed.eject()
    if how == "refuses":
        bed.sources["a"].refuse = Unavailable("not able")
    bed.pass_time(5)
    if how == "fails":
        bed.sources["a"].submitted[0].sink(BROKEN)
    elif how == "is silent":
        bed.pass_time(10)
    ended = bed.clock.time()
    assert bed.a.health.ejection.until == ended + 10
    bed.pass_time(9.75)
    assert bed.probes() == (0 if how == "refuses" else 1)
    bed.sources["a"].refuse = None
    bed.pass_time(0.25)
    bed.answer()
    assert bed.status() is Status.READY


@pytest.mark.parametrize("answer", [Overloaded("full"), InvalidRequest("no")])
def test_a_refusal_that_blames_the_replica_for_nothing_is_an_answer(
    answer: Overloaded | InvalidRequest,
) -> None:
    bed = Probed()
    bed.sources["a"].refuse = answer
    bed.eject()
    bed.pass_time(5)
    assert bed.status() is Status.READY


def test_a_probe_that_goes_with_its_session_decides_nothing() -> None:
    bed = Probed()
    bed.pass_time(10)
    bed.fleet.tell_load("a", None)
    bed.sources["a"].submitted[0].sink(Failed(code=Code.UNAVAILABLE, message="", retryable=True))
    bed.join("a")
    assert bed.status() is Status.READY
    bed.pass_time(10)
    assert bed.probes() == 2


def test_a_replica_that_takes_nothing_is_not_probed() -> None:
    bed = Probed()
    bed.fleet.drain("a")
    bed.fleet.tell_load("b", None)
    bed.pass_time(30)
    assert bed.probes("a") == bed.probes("b") == 0


def test_stop_and_removal_end_it() -> None:
    bed = Probed()
    bed.pass_time(10)
    bed.fleet.remove("b")
    bed.answer("b")
    bed.prober.stop()
    bed.pass_time(30)
    assert bed.sources["a"].cancelled == [("probe", CancelReason.UNSPECIFIED)]
    assert bed.probes("a") == bed.probes("b") == 1
    assert bed.status() is Status.READY
