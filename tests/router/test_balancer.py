"""Who takes a generation, and what is said when nobody does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.balancer import Candidate, Snapshot, choose
from services.router.replica import Status
from services.shared.errors import NotFound, Unavailable

candidates = st.lists(
    st.builds(
        Candidate,
        name=st.text("abcdefgh", min_size=1),
        status=st.sampled_from(Status),
        expected_tokens=st.integers(0, 5),
        assigned=st.integers(0, 5),
    ),
    unique_by=lambda candidate: candidate.name,
)


@given(candidates, st.sets(st.text("abcdefgh", min_size=1, max_size=1)))
def test_a_ready_untried_replica_with_the_fewest_tokens_is_chosen(
    fleet: list[Candidate], tried: set[str]
) -> None:
    eligible = [one for one in fleet if one.status is Status.READY and one.name not in tried]
    snapshot = Snapshot(model="m", candidates=fleet)
    if not eligible:
        with pytest.raises(Unavailable, match=f"of {len(fleet)}: "):
            choose("m", snapshot, tried)
        return
    decision = choose("m", snapshot, tried)
    (chosen,) = (one for one in fleet if one.name == decision.replica)
    assert chosen in eligible
    assert chosen.expected_tokens == min(one.expected_tokens for one in eligible)
    assert decision.reason == (
        f"fewest outstanding tokens, {chosen.expected_tokens}, of {len(eligible)} ready"
    )


def test_equals_take_turns() -> None:
    fleet = [
        Candidate(name="a", status=Status.READY, assigned=2),
        Candidate(name="b", status=Status.READY, assigned=1),
        Candidate(name="c", status=Status.READY, assigned=1),
    ]
    assert choose("", Snapshot(model="m", candidates=fleet)).replica == "b"


def test_none_ready_is_told_with_how_many_are_in_which_state() -> None:
    fleet = [
        Candidate(name="a", status=Status.UNREACHABLE),
        Candidate(name="b", status=Status.UNREACHABLE),
        Candidate(name="c", status=Status.DRAINING),
        Candidate(name="d", status=Status.READY),
    ]
    with pytest.raises(Unavailable) as caught:
        choose("", Snapshot(model="m", candidates=fleet), ["d"])
    assert caught.value.message == (
        "no replica can take the generation; of 4: 1 draining, 1 failed it, 2 unreachable"
    )


def test_another_model_is_not_found_and_none_named_is_whichever() -> None:
    snapshot = Snapshot(model="m", candidates=[Candidate(name="a", status=Status.READY)])
    with pytest.raises(NotFound) as caught:
        choose("gpt", snapshot)
    assert caught.value.message == "model 'gpt' is not served here, 'm' is"
    assert caught.value.field == "model"
    assert choose("m", snapshot).replica == choose("", snapshot).replica == "a"


def test_before_any_replica_is_described_no_model_is_unknown() -> None:
    snapshot = Snapshot(model=None, candidates=[Candidate(name="a", status=Status.STARTING)])
    with pytest.raises(Unavailable, match="of 1: 1 starting"):
        choose("gpt", snapshot)
