"""The plain policies, by the order in which they give generations."""

from __future__ import annotations

import pytest

from services.router.balancing.balancer import Balancer
from services.router.balancing.policies import LeastTokens, Policy, PowerOfTwo, RoundRobin, Weighted
from tests.router.candidates import demand, fleet, ready


def order(policy: Policy, count: int, **load: int) -> str:
    """The names of those that were given the first generations, while loads stay as they are."""
    balancer = Balancer(policy)
    members = fleet(*(ready(name, expected_tokens=tokens) for name, tokens in load.items()))
    decisions = [balancer.place(demand(), members) for _ in range(count)]
    return "".join(decision.replica for decision in decisions if decision is not None)


def test_round_robin_goes_round_whatever_the_load() -> None:
    assert order(RoundRobin(), 6, a=100, b=0, c=7) == "abcabc"


def test_weighted_spreads_the_turns_of_the_heavy_among_those_of_the_light() -> None:
    balancer = Balancer(Weighted())
    members = fleet(ready("a", weight=3, expected_tokens=9999), ready("b"))
    decisions = [balancer.place(demand(), members) for _ in range(8)]
    names = "".join(decision.replica for decision in decisions if decision is not None)
    assert names.count("a") == 6
    assert "aaaa" not in names


def test_least_tokens_takes_the_least_busy() -> None:
    assert order(LeastTokens(), 3, a=5, b=4, c=6) == "bbb"
    assert order(LeastTokens(), 4, a=5, b=4, c=4) == "bcbc"


def test_power_of_two_never_takes_the_busiest_and_not_always_the_least_busy() -> None:
    names = order(PowerOfTwo(b"salt"), 300, a=1, b=2, c=3, d=4)
    assert names.count("d") == 0
    assert names.count("a") == pytest.approx(150, rel=0.15)
    assert names.count("b") == pytest.approx(100, rel=0.25)
    assert names != order(PowerOfTwo(b"other"), 300, a=1, b=2, c=3, d=4)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (RoundRobin(), "next in turn; 2 ready"),
        (Weighted(), "next in turn by weight 1; 2 ready"),
        (LeastTokens(), "fewest outstanding tokens, 5; 2 ready"),
        (PowerOfTwo(b""), "fewest outstanding tokens of two drawn, 5; 2 ready"),
    ],
)
def test_each_tells_why(policy: Policy, reason: str) -> None:
    members = fleet(ready("a", expected_tokens=5), ready("b", expected_tokens=8))
    decision = Balancer(policy).place(demand(), members)
    assert decision is not None
    assert decision.reason == reason


def test_unknown_loads_are_behind_and_serve_where_nothing_else_does() -> None:
    for policy in (LeastTokens(), PowerOfTwo(b"")):
        balancer = Balancer(policy)
        unknown = ready("a", expected_tokens=None)
        decision = balancer.place(demand(), fleet(unknown, ready("b", expected_tokens=10**6)))
        assert decision is not None
        assert decision.replica == "b"
        decision = balancer.place(demand(), fleet(unknown))
        assert decision is not None
        assert "unknown" in decision.reason
