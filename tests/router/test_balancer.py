"""Who takes a generation, and what is said when nobody does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.balancer import Decision, choose
from services.router.candidate import Candidate, Snapshot
from services.router.demand import Demand, Lane
from services.router.status import TAKING, Status
from services.shared.errors import NotFound, Unavailable

DEMAND = Demand(model="", token_ids=[1, 2, 3], output_tokens=5, lane=Lane.SHORT)

candidates = st.lists(
    st.builds(
        Candidate,
        name=st.text("abcdefgh", min_size=1, max_size=2),
        status=st.sampled_from(Status),
        expected_tokens=st.integers(0, 5),
        assigned=st.integers(0, 5),
        has_room=st.booleans(),
    ),
    unique_by=lambda candidate: candidate.name,
)


def of(*fleet: Candidate) -> Snapshot:
    return Snapshot(model="m", candidates=fleet)


def chosen(fleet: Snapshot, demand: Demand = DEMAND) -> str:
    decision = choose(demand, fleet)
    assert decision is not None
    return decision.replica


@given(candidates, st.sets(st.text("abcdefgh", min_size=1, max_size=1)))
def test_the_chosen_one_takes_generations_has_room_and_did_not_fail_it(
    fleet: list[Candidate], failed: set[str]
) -> None:
    demand = replace(DEMAND, avoid=frozenset((name, 1) for name in failed))
    taking = [one for one in fleet if one.status in TAKING and one.name not in failed]
    if not taking:
        with pytest.raises(Unavailable, match=f"of {len(fleet)}: "):
            choose(demand, of(*fleet))
        return
    best = min(TAKING.index(one.status) for one in taking)
    able = [one for one in taking if TAKING.index(one.status) == best and one.has_room]
    decision = choose(demand, of(*fleet))
    assert (decision is None) == (not able)
    assert decision is None or decision.replica in {one.name for one in able}


def test_equals_take_turns() -> None:
    fleet = [
        Candidate(name="a", status=Status.READY, assigned=2),
        Candidate(name="b", status=Status.READY, assigned=1),
        Candidate(name="c", status=Status.READY, assigned=1),
    ]
    assert chosen(of(*fleet)) == "b"


def test_none_that_takes_it_is_told_with_how_many_are_in_which_state() -> None:
    fleet = [
        Candidate(name="a", status=Status.GONE),
        Candidate(name="b", status=Status.GONE),
        Candidate(name="c", status=Status.DRAINING),
        Candidate(name="d", status=Status.READY, epoch=4),
    ]
    with pytest.raises(Unavailable) as caught:
        choose(replace(DEMAND, avoid=frozenset({("d", 4)})), of(*fleet))
    assert caught.value.message == (
        "no replica can take the generation; of 4: 1 draining, 1 failed it, 2 gone"
    )


def test_a_replica_that_failed_it_in_an_earlier_session_may_try_again() -> None:
    demand = replace(DEMAND, avoid=frozenset({("a", 4)}))
    assert chosen(of(Candidate(name="a", status=Status.READY, epoch=5)), demand) == "a"


def test_another_model_is_not_found_and_none_named_is_whichever() -> None:
    fleet = of(Candidate(name="a", status=Status.READY))
    with pytest.raises(NotFound) as caught:
        choose(replace(DEMAND, model="gpt"), fleet)
    assert caught.value.message == "model 'gpt' is not served here, 'm' is"
    assert caught.value.field == "model"
    assert chosen(fleet) == chosen(fleet, replace(DEMAND, model="m")) == "a"


def test_before_any_replica_is_described_no_model_is_unknown() -> None:
    fleet = Snapshot(model=None, candidates=[Candidate(name="a", status=Status.STARTING)])
    with pytest.raises(Unavailable, match="of 1: 1 starting"):
        choose(replace(DEMAND, model="gpt"), fleet)


def test_a_reason_names_no_replica() -> None:
    decision = choose(DEMAND, of(Candidate(name="a-secret-place", status=Status.READY)))
    assert isinstance(decision, Decision)
    assert "secret" not in decision.reason
