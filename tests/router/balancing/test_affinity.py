"""What the default policy counts, and how it tells it."""

from __future__ import annotations

from collections import Counter

import pytest

from services.router.balancing.balancer import Balancer, Decision
from services.router.balancing.candidate import Candidate
from services.router.demand import Demand
from tests.router.candidates import demand, fleet, ready


def decided(what: Demand, *members: Candidate) -> Decision:
    decision = Balancer().place(what, fleet(*members))
    assert decision is not None
    return decision


def test_a_cached_prefix_is_worth_half_as_many_tokens_again_of_others_before_it() -> None:
    what = demand(640)
    cached = ready("a", cached_tokens=512, expected_tokens=750, pending_tokens=750)
    assert decided(what, cached, ready("b")).replica == "a"
    cached = ready("a", cached_tokens=512, expected_tokens=780, pending_tokens=780)
    assert decided(what, cached, ready("b")).replica == "b"


def test_tokens_to_come_count_less_than_prompts() -> None:
    prompts = ready("a", expected_tokens=300, pending_tokens=300)
    outputs = ready("b", expected_tokens=900)
    assert decided(demand(), prompts, outputs).replica == "b"
    assert decided(demand(), ready("c", expected_tokens=800), outputs).replica == "c"


def test_the_parts_of_the_cost_are_told() -> None:
    one = ready("a", cached_tokens=512, expected_tokens=300, pending_tokens=300, memory_used=0.95)
    assert decided(demand(640), one, ready("b", expected_tokens=10**6, pending_tokens=10**6)) == (
        Decision(
            replica="a",
            reason="prefix 512 of 640 cached, 128 to compute, 300 ahead, "
            "1694 for memory 95% used; 2 ready",
            cached_tokens=512,
        )
    )
    light = decided(demand(640), ready("a", weight=0.5)).reason
    assert light == "prefix 0 of 640 cached, 640 to compute, 0 ahead, weight 0.5; 1 ready"


@pytest.mark.parametrize(("used", "other"), [(0.5, "a"), (0.97, "b")])
def test_memory_that_is_nearly_full_is_dear_and_half_of_it_is_not(used: float, other: str) -> None:
    members = (ready("a", memory_used=used), ready("b", expected_tokens=1000))
    assert decided(demand(), *members).replica == other


def test_sessions_have_homes_that_are_even_and_stay_when_another_replica_leaves() -> None:
    members = [ready(name) for name in "abcd"]
    homes = {
        key: decided(demand(session=("tenant", str(key))), *members).replica for key in range(400)
    }
    assert min(Counter(homes.values()).values()) > 60
    for key, home in homes.items():
        again = decided(demand(session=("tenant", str(key))), *members[:3])
        assert home in (again.replica, "d")
        assert again.reason.startswith("home of its session, 50 of 100 taken to be cached, ")


def test_tenants_with_one_session_key_have_homes_of_their_own() -> None:
    members = [ready(name) for name in "abcd"]
    homes = {decided(demand(session=(str(n), "k")), *members).replica for n in range(40)}
    assert homes == set("abcd")


def test_a_known_prefix_counts_more_than_the_home() -> None:
    members = [ready(name) for name in "abcd"]
    what = demand(session=("tenant", "key"))
    home = decided(what, *members).replica
    other = ready("z", cached_tokens=60)
    assert decided(what, *members, other).replica == "z"
    assert decided(what, *members, ready("z", cached_tokens=40)).replica == home


def test_a_home_that_tells_its_blocks_and_has_none_of_the_prompt_is_no_better() -> None:
    members = [ready(name, tells_blocks=True) for name in "abcd"]
    reasons = {decided(demand(session=("t", str(n))), *members).reason for n in range(20)}
    assert reasons == {"prefix 0 of 100 cached, 100 to compute, 0 ahead; 4 ready"}


def test_a_busy_home_is_left() -> None:
    members = [ready(name) for name in "abcd"]
    what = demand(session=("tenant", "key"))
    home = decided(what, *members).replica
    busy = [
        ready(one.name, expected_tokens=900, pending_tokens=900) if one.name == home else one
        for one in members
    ]
    assert decided(what, *busy).replica != home
