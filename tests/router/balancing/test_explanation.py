"""What is told of a decision without making it."""

from __future__ import annotations

from math import inf

from services.router.balancing.balancer import Balancer
from services.router.balancing.explanation import explain
from services.router.status import Status
from tests.router.candidates import demand, fleet, ready


def test_all_replicas_are_told_the_best_first_and_the_decision_is_the_one_that_follows() -> None:
    balancer = Balancer()
    members = fleet(
        ready("a", expected_tokens=50, pending_tokens=50),
        ready("b", status=Status.DRAINING),
        ready("c", cached_tokens=64),
        ready("d", status=Status.DEGRADED),
        ready("e", has_room=False),
        ready("f", takes_lane=False),
    )
    told = explain(demand(), members, balancer)
    assert [option.candidate.name for option in told.options] == ["c", "a", "d", "e", "f", "b"]
    assert [option.cost for option in told.options] == [54, 200, 150, 150, 150, inf]
    assert [option.reason.partition(",")[0] for option in told.options] == [
        "prefix 64 of 100 cached",
        "prefix 0 of 100 cached",
        "only where no ready replica can; prefix 0 of 100 cached",
        "no room; prefix 0 of 100 cached",
        "kept for other prompts; prefix 0 of 100 cached",
        "draining",
    ]
    assert told == explain(demand(), members, balancer)
    decision = balancer.place(demand(), members)
    assert decision is not None
    assert (told.replica, told.reason) == (decision.replica, decision.reason)


def test_turns_are_not_counted() -> None:
    balancer, members = Balancer(), fleet(ready("a"), ready("b"))
    for _ in range(5):
        assert explain(demand(), members, balancer).replica == "a"


def test_what_would_wait_or_be_refused_is_told() -> None:
    full = explain(demand(), fleet(ready("a", has_room=False)), Balancer())
    assert full.replica is None
    assert full.reason == "all that could take it are full; it would wait"
    gone = explain(demand(), fleet(ready("a", status=Status.GONE)), Balancer())
    assert gone.replica is None
    assert gone.reason == "no replica can take the generation; of 1: 1 gone"
    assert [(option.cost, option.reason) for option in gone.options] == [(inf, "gone")]
    other = explain(demand(model="x"), fleet(ready("a")), Balancer())
    assert other.reason == "model 'x' is not served here, 'm' is"
