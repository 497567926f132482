"""Roles are preferences: who is for prompts takes outputs only where no other can."""

from __future__ import annotations

from math import inf

import pytest

from services.router.balancing.balancer import Balancer, Decision
from services.router.balancing.explanation import explain
from services.router.balancing.offer import Offer
from services.router.balancing.policies import LeastTokens, Policy, PowerOfTwo, RoundRobin, Weighted
from services.router.status import Role, Status
from tests.router.candidates import demand, fleet, ready

PREFILLED = Offer(source="p", tokens=96, is_prefill=True)


def placed(*candidates: object, policy: Policy | None = None) -> Decision | None:
    return Balancer(policy).place(demand(), fleet(*candidates))  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [None, RoundRobin(), LeastTokens(), Weighted(), PowerOfTwo(b"")])
@pytest.mark.parametrize("role", [Role.DECODE, Role.BOTH])
def test_a_generation_goes_to_a_replica_for_outputs(role: Role, policy: Policy | None) -> None:
    idle = ready("p", role=Role.PREFILL, cached_tokens=99)
    busy = ready("d", role=role, expected_tokens=9000)
    decision = placed(idle, busy, policy=policy)
    assert decision is not None
    assert decision.replica == "d"


def test_one_for_prompts_takes_it_where_no_other_can_and_the_reason_says_so() -> None:
    decision = placed(ready("p", role=Role.PREFILL), ready("d", status=Status.GONE))
    assert decision is not None
    assert decision.replica == "p"
    assert decision.reason.endswith("1 ready; no replica for outputs is up")


@pytest.mark.parametrize("other", [{"status": Status.DEGRADED}, {"takes_lane": False}])
def test_any_other_that_can_goes_before_it(other: dict[str, object]) -> None:
    decision = placed(ready("p", role=Role.PREFILL), ready("d", role=Role.DECODE, **other))
    assert decision is not None
    assert decision.replica == "d"


def test_where_the_others_are_full_a_generation_waits_and_goes_not_to_one_for_prompts() -> None:
    members = fleet(ready("p", role=Role.PREFILL), ready("d", has_room=False))
    assert Balancer().place(demand(), members) is None
    told = explain(demand(), members, Balancer())
    assert told.replica is None
    reasons = [(one.candidate.name, one.reason.partition(";")[0]) for one in told.options]
    assert sorted(reasons) == [("d", "no room"), ("p", "kept for prompts of others")]
    assert all(option.cost < inf for option in told.options)


def test_a_prompt_that_another_computes_costs_little_and_its_decision_says_who_does() -> None:
    decision = placed(
        ready("d1", cached_tokens=80, expected_tokens=20, pending_tokens=20),
        ready("d2", offer=PREFILLED),
    )
    assert decision is not None
    assert (decision.replica, decision.prefill, decision.peer) == ("d2", "p", None)
    assert decision.reason == "prefix 0 of 100 cached, 4 to compute, 0 ahead, 96 prefilled by " + (
        "another; 2 ready"
    )


def test_what_is_cached_here_is_better_than_what_has_to_be_fetched() -> None:
    decision = placed(
        ready("d1", offer=Offer(source="d2", tokens=96)), ready("d2", cached_tokens=96)
    )
    assert decision is not None
    assert decision.replica == "d2"
    decision = placed(
        ready("d1", offer=Offer(source="d2", tokens=96)),
        ready("d2", cached_tokens=96, expected_tokens=30, pending_tokens=30),
    )
    assert decision is not None
    assert (decision.replica, decision.peer) == ("d1", "d2")
