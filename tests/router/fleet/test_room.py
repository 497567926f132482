"""When a replica has room for one more generation."""

from __future__ import annotations

import pytest

from services.router.balancing.balancer import Decision
from services.router.demand import Demand, Lane
from services.router.fleet.replica import Replica
from services.router.fleet.room import RoomRules, has_room
from services.router.relay.leg import Leg
from services.shared.stream.load import Load, ReplicaState
from tests.router.kept_attempt import KeptAttempt
from tests.scripted_source import ScriptedSource

RULES = RoomRules(slots=8, window={Lane.SHORT: 100, Lane.LONG: 1000})


def replica(slots: int = 0) -> Replica:
    one = Replica("a", ScriptedSource())
    one.tell_load(Load(state=ReplicaState.READY, slots=slots), 0.0)
    return one


def demand(tokens: int, lane: Lane = Lane.SHORT) -> Demand:
    return Demand(model="m", token_ids=range(tokens), output_tokens=4, lane=lane)


def fill(one: Replica, *demands: Demand) -> list[Leg]:
    here = Decision(replica=one.name, reason="")
    return [Leg(one, here, each, 0.0, KeptAttempt()) for each in demands]


def test_what_is_cached_of_a_prompt_takes_no_room() -> None:
    one = replica()
    cached = Decision(replica=one.name, reason="", cached_tokens=900)
    leg = Leg(one, cached, demand(960), 0.0, KeptAttempt())
    assert (one.pending_tokens, one.outstanding_tokens) == (60, 64)
    assert has_room(one, demand(960), RULES, 920)
    assert not has_room(one, demand(960), RULES, 919)
    leg.begin(0.0)
    assert (one.pending_tokens, one.outstanding_tokens) == (0, 4)
    leg.end("finished")
    assert one.outstanding_tokens == 0


@pytest.mark.parametrize(("told", "taken"), [(0, 9), (16, 18), (1, 2), (3, 4)])
def test_a_replica_takes_its_slots_and_an_eighth_more(told: int, taken: int) -> None:
    one = replica(slots=told)
    for _ in range(taken):
        assert has_room(one, demand(1), RULES)
        (leg,) = fill(one, demand(1))
        leg.begin(0.0)
    assert not has_room(one, demand(1), RULES)
    leg.end("finished")
    assert has_room(one, demand(1), RULES)


def test_prompts_that_wait_to_be_computed_fit_the_window_of_their_lane() -> None:
    one = replica()
    (leg,) = fill(one, demand(60))
    assert has_room(one, demand(40), RULES)
    assert not has_room(one, demand(41), RULES)
    assert has_room(one, demand(5000, Lane.LONG), RULES)
    leg.begin(0.0)
    assert has_room(one, demand(41), RULES)


def test_a_prompt_longer_than_the_window_goes_where_none_of_its_lane_waits() -> None:
    one = replica()
    assert has_room(one, demand(5000, Lane.LONG), RULES)
    (leg,) = fill(one, demand(5000, Lane.LONG))
    assert not has_room(one, demand(1, Lane.LONG), RULES)
    assert has_room(one, demand(100), RULES)
    leg.end("finished")
    assert one.pending == {Lane.SHORT: 0, Lane.LONG: 0}
    assert has_room(one, demand(1, Lane.LONG), RULES)
