"""Who takes a generation, and what is said when nobody does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.router.balancing.balancer import Balancer
from services.router.balancing.candidate import Candidate, Snapshot
from services.router.balancing.policies import LeastTokens, Policy, PowerOfTwo, Weighted
from services.router.balancing.versions import Versions, VersionShare
from services.router.demand import Demand, Lane
from services.router.status import TAKING, Status
from services.shared.errors import NotFound, Unavailable
from tests.router.candidates import demand, fleet, ready

candidates = st.lists(
    st.builds(
        Candidate,
        name=st.text("abcdefgh", min_size=1, max_size=2),
        status=st.sampled_from(Status),
        expected_tokens=st.one_of(st.none(), st.integers(0, 5)),
        memory_used=st.one_of(st.none(), st.floats(0, 1)),
        weight=st.sampled_from([0, 0.5, 1, 3]),
        cached_tokens=st.integers(0, 100),
        assigned=st.integers(0, 5),
        takes_lane=st.booleans(),
        has_room=st.booleans(),
    ),
    unique_by=lambda candidate: candidate.name,
)


def placed(balancer: Balancer, what: Demand, where: Snapshot) -> str:
    decision = balancer.place(what, where)
    assert decision is not None
    return decision.replica


def chosen(where: Snapshot, what: Demand | None = None) -> str:
    return placed(Balancer(), what or demand(), where)


def reason(where: Snapshot, what: Demand | None = None) -> str:
    decision = Balancer().place(what or demand(), where)
    assert decision is not None
    return decision.reason


@given(candidates, st.sets(st.text("abcdefgh", min_size=1, max_size=1)))
def test_the_chosen_one_takes_generations_has_room_and_did_not_fail_it(
    members: list[Candidate], failed: set[str]
) -> None:
    what = demand(avoid=frozenset((name, 1) for name in failed))
    taking = [
        one for one in members if one.status in TAKING and one.name not in failed and one.weight > 0
    ]
    if not taking:
        with pytest.raises(Unavailable, match=f"of {len(members)}: "):
            Balancer().place(what, fleet(*members))
        return
    pool = [one for one in taking if one.takes_lane] or taking
    best = TAKING[min(TAKING.index(one.status) for one in pool)]
    able = {one.name for one in pool if one.status is best and one.has_room}
    decision = Balancer().place(what, fleet(*members))
    assert (decision is None) == (not able)
    if decision is not None:
        assert decision.replica in able
        assert f"; {len(able)} {best}" in decision.reason


def test_equals_take_turns() -> None:
    balancer, members = Balancer(), fleet(ready("a"), ready("b"), ready("c"))
    assert [placed(balancer, demand(), members) for _ in range(6)] == list("abcabc")


def test_a_degraded_replica_takes_only_what_no_ready_one_can_even_later() -> None:
    degraded = ready("a", status=Status.DEGRADED)
    busy = ready("b", expected_tokens=9000, pending_tokens=9000)
    assert chosen(fleet(degraded, busy)) == "b"
    assert Balancer().place(demand(), fleet(degraded, replace(busy, has_room=False))) is None
    assert chosen(fleet(degraded, replace(busy, status=Status.STUCK))) == "a"
    assert reason(fleet(degraded)).endswith("; 1 degraded")


def test_unknown_load_is_behind_any_that_is_known() -> None:
    known = ready("b", expected_tokens=10**7, pending_tokens=10**7)
    assert chosen(fleet(ready("a", expected_tokens=None), known)) == "b"
    assert "its load unknown" in reason(fleet(ready("a", expected_tokens=None)))


def test_none_that_takes_it_is_told_with_how_many_are_in_which_state() -> None:
    members = [
        ready("a", status=Status.GONE),
        ready("b", status=Status.GONE),
        ready("c", status=Status.DRAINING),
        ready("d", epoch=4, version="w"),
        ready("e", version="v"),
        ready("f", version="w", weight=0),
    ]
    with pytest.raises(Unavailable) as caught:
        chosen(fleet(*members), demand(avoid=frozenset({("d", 4)}), version="w"))
    assert caught.value.message == (
        "no replica can take the generation; of 6: "
        "1 draining, 1 failed it, 2 gone, 1 of another version, 1 of weight 0"
    )


def test_a_replica_that_failed_it_in_an_earlier_session_may_try_again() -> None:
    assert chosen(fleet(ready("a", epoch=5)), demand(avoid=frozenset({("a", 4)}))) == "a"


def test_another_model_is_not_found_and_none_named_is_whichever() -> None:
    members = fleet(ready("a"))
    with pytest.raises(NotFound) as caught:
        chosen(members, demand(model="gpt"))
    assert caught.value.message == "model 'gpt' is not served here, 'm' is"
    assert caught.value.field == "model"
    assert chosen(members) == chosen(members, demand(model="m")) == "a"


def test_before_any_replica_is_described_no_model_is_unknown() -> None:
    with pytest.raises(Unavailable, match="of 1: 1 starting"):
        chosen(fleet(ready("a", status=Status.STARTING), model=None), demand(model="gpt"))


def test_a_pool_is_for_its_prompts_while_one_of_it_is_up() -> None:
    short = ready("a", takes_lane=False)
    long = ready("b", expected_tokens=500)
    what = demand(lane=Lane.LONG)
    assert chosen(fleet(short, long), what) == "b"
    assert Balancer().place(what, fleet(short, replace(long, has_room=False))) is None
    assert chosen(fleet(short, replace(long, status=Status.GONE)), what) == "a"
    told = reason(fleet(short, replace(long, status=Status.GONE)), what)
    assert told.endswith("; 1 ready; no replica for long prompts is up")


def test_a_reason_names_no_replica() -> None:
    assert "secret" not in reason(fleet(ready("a-secret-place")))


class Traffic:
    """Generations that come and go, `at_once` of them at a time."""

    def __init__(self, balancer: Balancer, *members: Candidate) -> None:
        self._balancer = balancer
        self._members = {one.name: one for one in members}
        self._running: list[tuple[str, int]] = []

    def given(self, count: int, at_once: int, prompts: Sequence[int] = (100,)) -> Counter[str]:
        """How many each was given."""
        random, counts = Random(1), Counter[str]()  # noqa: S311  # a world, not a secret
        for _ in range(count):
            while len(self._running) >= at_once:
                self._end(random.randrange(len(self._running)))
            what = demand(random.choice(prompts))
            name = placed(self._balancer, what, fleet(*self._members.values()))
            counts[name] += 1
            self._running.append((name, what.tokens))
            self._add(name, what.tokens)
        return counts

    def _end(self, number: int) -> None:
        name, tokens = self._running.pop(number)
        self._add(name, -tokens)

    def _add(self, name: str, tokens: int) -> None:
        one = self._members[name]
        self._members[name] = replace(one, expected_tokens=(one.expected_tokens or 0) + tokens)


@pytest.mark.parametrize("policy", [None, LeastTokens(), PowerOfTwo(b"salt"), Weighted()])
@pytest.mark.parametrize("at_once", [1, 2, 8, 64])
def test_shares_follow_weights_busy_or_not(policy: Policy | None, at_once: int) -> None:
    weights = {"a": 1, "b": 0.5, "c": 3, "d": 0.25}
    members = [ready(name, weight=weight) for name, weight in weights.items()]
    counts = Traffic(Balancer(policy), *members).given(1000, at_once, (20, 100, 900))
    for name, weight in weights.items():
        assert counts[name] == pytest.approx(1000 * weight / 4.75, rel=0.1)


def test_shares_are_met_although_a_prefix_is_cached_at_one() -> None:
    members = [ready("a", cached_tokens=90), ready("b", weight=2)]
    counts = Traffic(Balancer(), *members).given(900, 4)
    assert counts["a"] == pytest.approx(300, rel=0.1)


def test_what_comes_back_is_not_flooded() -> None:
    balancer = Balancer()
    a, b = ready("a", weight=2), ready("b")
    for _ in range(300):
        placed(balancer, demand(), fleet(a, replace(b, status=Status.GONE)))
    names = [placed(balancer, demand(), fleet(a, b)) for _ in range(300)]
    assert names[:60].count("b") <= 30
    assert names.count("b") == pytest.approx(100, rel=0.15)


def test_versions_share_new_generations_exactly_and_keep_what_they_began() -> None:
    balancer = Balancer(
        versions=Versions([VersionShare(fingerprint="old", weight=9), VersionShare.parse("new=1")])
    )
    members = fleet(
        ready("a", version="old-1", expected_tokens=10**6),
        ready("b", version="old-1", expected_tokens=10**6),
        ready("c", version="new-1"),
    )
    names = [placed(balancer, demand(), members) for _ in range(1000)]
    assert names.count("c") == 100
    assert names.count("a") == names.count("b")
    begun = demand(version="old-1")
    assert {placed(balancer, begun, members) for _ in range(20)} == {"a", "b"}
    full = fleet(*(replace(one, has_room=one.name == "c") for one in members.candidates))
    assert placed(balancer, demand(), full) == "c"
    assert balancer.place(begun, full) is None


def test_a_version_of_weight_0_takes_nothing_new_and_ends_what_it_began() -> None:
    versions = Versions([VersionShare(fingerprint="old", weight=0), VersionShare.parse("new")])
    members = fleet(ready("a", version="old"), ready("b", version="new"))
    balancer = Balancer(versions=versions)
    assert {placed(balancer, demand(), members) for _ in range(4)} == {"b"}
    assert placed(balancer, demand(version="old"), members) == "a"
