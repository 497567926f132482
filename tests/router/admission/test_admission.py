"""Who gets a place, in which order, and who waits for none."""

from __future__ import annotations

import pytest

from services.router.admission.admission_rules import AdmissionRules
from services.router.demand import Lane
from services.shared.errors import NotFound, Overloaded, Unavailable
from services.shared.stream.generation import PriorityClass
from tests.router.bureau import PLACES, Bureau, demand


def test_who_finds_room_goes_at_once_and_others_wait_for_a_place() -> None:
    bureau = Bureau()
    first = bureau.fill()[0]
    late = bureau.enter(demand())
    assert late.waits
    assert bureau.admission.waiting == 1
    bureau.finish(first)
    assert late.leg is not None
    assert bureau.admission.waiting == 0


def test_tenants_take_turns_by_tokens_however_many_each_sends() -> None:
    bureau = Bureau()
    running = bureau.fill()
    many = [bureau.enter(demand("many")) for _ in range(6)]
    few = [bureau.enter(demand("few")) for _ in range(2)]
    for visitor in running[:4]:
        bureau.finish(visitor)
    assert bureau.went == [many[0], few[0], many[1], few[1]]


def test_one_tenant_s_earliest_deadline_goes_first_and_none_goes_last() -> None:
    bureau = Bureau()
    running = bureau.fill()
    patient, late, soon, also_soon = (
        bureau.enter(demand(), timeout_s) for timeout_s in (None, 60, 30, 30)
    )
    for visitor in running[:4]:
        bureau.finish(visitor)
    assert bureau.went == [soon, also_soon, late, patient]


def test_batch_fills_what_interactive_leaves() -> None:
    bureau = Bureau()
    running = bureau.fill()
    batch = bureau.enter(demand(batch=True))
    urgent = bureau.enter(demand())
    bureau.finish(running[0])
    assert bureau.went == [urgent]
    bureau.finish(running[1])
    assert bureau.went == [urgent, batch]


def test_batch_has_one_token_in_ten_while_interactive_waits() -> None:
    bureau = Bureau()
    running = bureau.fill()
    for number in range(60):
        bureau.enter(demand(batch=number % 2 == 0))
    for visitor in running:
        bureau.finish(visitor)
    while len(bureau.went) < 30:
        bureau.finish(bureau.went[len(bureau.went) - PLACES])
    batch = [
        number
        for number, visitor in enumerate(bureau.went)
        if visitor.demand.priority_class is PriorityClass.BATCH
    ]
    assert batch == [9, 19, 29]


def test_a_long_prompt_that_finds_no_room_holds_up_no_short_one() -> None:
    bureau = Bureau()
    bureau.enter(demand("heavy", 9000, lane=Lane.LONG))
    long = bureau.enter(demand("heavy", 9000, lane=Lane.LONG))
    assert long.waits
    assert bureau.enter(demand("heavy")).leg is not None
    assert bureau.enter(demand("light")).leg is not None


def test_small_prompts_do_not_overtake_a_large_one_of_their_lane_for_ever() -> None:
    bureau = Bureau(window=100)
    first = bureau.enter(demand("light", 50))
    large = bureau.enter(demand("heavy", 90))
    small = bureau.enter(demand("light", 40))
    assert large.waits
    assert small.waits
    bureau.begin(first)
    assert large.leg is not None
    assert small.waits
    bureau.begin(large)
    assert small.leg is not None


def test_a_newcomer_whose_turn_it_is_goes_before_a_larger_one_that_has_no_room() -> None:
    bureau = Bureau(window=100)
    first = bureau.enter(demand("heavy", 60))
    bureau.enter(demand("heavy", 50))
    blocked = bureau.enter(demand("heavy", 90))
    bureau.begin(first)
    assert bureau.enter(demand("light", 40)).leg is not None
    assert blocked.waits


def test_who_lost_a_place_goes_before_all_new_ones() -> None:
    bureau = Bureau()
    running = bureau.fill()
    new = bureau.enter(demand(), timeout_s=1)
    returning = bureau.resume(demand(version="w", avoid=frozenset({("a", 7)})))
    bureau.finish(running[0])
    assert bureau.went == [returning]
    bureau.finish(running[1])
    assert bureau.went == [returning, new]


def test_who_lost_a_place_is_never_too_many() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=1))
    running = bureau.fill()
    bureau.enter(demand())
    returning = [bureau.resume(demand(avoid=frozenset({("a", 7)}))) for _ in range(5)]
    assert bureau.admission.waiting == 6
    for visitor in running[:5]:
        bureau.finish(visitor)
    assert bureau.went == returning


def test_one_that_waits_for_another_replica_than_all_others_holds_up_nobody() -> None:
    bureau = Bureau()
    returning = bureau.resume(demand(avoid=frozenset({("a", 1)})))
    assert returning.waits
    assert bureau.enter(demand()).leg is not None


def test_who_leaves_is_gone_and_what_it_held_up_goes_on() -> None:
    bureau = Bureau(window=100)
    bureau.enter(demand(prompt=50))
    large, small = bureau.enter(demand(prompt=90), 1), bureau.enter(demand(prompt=40), 2)
    bureau.leave(large)
    assert small.leg is not None
    assert bureau.admission.waiting == 0
    bureau.leave(large)
    returning = bureau.resume(demand(avoid=frozenset({("a", 1)})))
    bureau.leave(returning)
    assert bureau.admission.waiting == 0
    bureau.clock.pass_time(100)
    assert returning.refusal is None


def test_another_model_is_told_at_once_however_many_wait() -> None:
    bureau = Bureau()
    with pytest.raises(NotFound, match="'other' is not served here"):
        bureau.enter(demand(model="other"))
    bureau.fill()
    bureau.enter(demand())
    with pytest.raises(NotFound):
        bureau.enter(demand(model="other"))
    with pytest.raises(NotFound):
        bureau.resume(demand(model="other"))
    assert bureau.admission.waiting == 1


def test_without_a_replica_new_ones_are_refused_at_once() -> None:
    bureau = Bureau()
    bureau.fill()
    kept = bureau.enter(demand())
    bureau.die("a")
    bureau.admission.pump()
    assert kept.waits
    with pytest.raises(Unavailable, match="of 1: 1 gone"):
        bureau.enter(demand())
    assert bureau.admission.waiting == 1


def test_what_was_taken_waits_for_a_replica_that_comes_again() -> None:
    bureau = Bureau()
    running = bureau.fill()
    new = bureau.enter(demand())
    bureau.die("a")
    for visitor in running:
        bureau.finish(visitor)
    returning = bureau.resume(demand(avoid=frozenset({("a", 1)})))
    bureau.clock.pass_time(29)
    assert new.waits
    assert returning.waits
    bureau.come("a")
    bureau.admission.pump()
    assert bureau.went == [returning, new]
    bureau.clock.pass_time(100)


def test_a_replica_that_does_not_come_in_time_is_waited_for_no_longer() -> None:
    bureau = Bureau(rules=AdmissionRules(wait_for_replica_s=5))
    running = bureau.fill()
    new = [bureau.enter(demand()), bureau.enter(demand(batch=True))]
    bureau.die("a")
    for visitor in running:
        bureau.finish(visitor)
    returning = bureau.resume(demand(avoid=frozenset({("a", 1)})))
    bureau.clock.pass_time(4.9)
    assert returning.waits
    bureau.clock.pass_time(0.1)
    for visitor in [returning, *new]:
        assert isinstance(visitor.refusal, Unavailable)
        assert visitor.refusal.message.endswith("; waited 5 s for one")
    assert bureau.admission.waiting == 0


def test_each_absence_is_waited_out_from_its_own_beginning() -> None:
    bureau = Bureau(rules=AdmissionRules(wait_for_replica_s=5))
    for _ in range(2):
        running = bureau.fill()
        kept = bureau.enter(demand())
        bureau.die("a")
        for visitor in running:
            bureau.finish(visitor)
        bureau.clock.pass_time(3)
        assert kept.waits
        bureau.come("a")
        bureau.admission.pump()
        bureau.finish(kept)


def test_where_no_replica_is_waited_for_the_loss_is_told_at_once() -> None:
    bureau = Bureau(rules=AdmissionRules(wait_for_replica_s=0))
    bureau.fill()
    new = bureau.enter(demand())
    bureau.die("a")
    with pytest.raises(Unavailable):
        bureau.resume(demand(avoid=frozenset({("a", 1)})))
    bureau.admission.pump()
    assert isinstance(new.refusal, Unavailable)
    assert bureau.clock.alarms == []


def test_a_full_queue_refuses_with_limit_value_and_when_to_come_again() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=3))
    running = bureau.fill()
    for _ in range(3):
        bureau.enter(demand())
    with pytest.raises(Overloaded) as caught:
        bureau.enter(demand())
    assert caught.value.message == "at most 3 generations wait for a replica, 3 do"
    assert caught.value.retry_after_s == pytest.approx(1.25)
    assert bureau.admission.load().refusing
    bureau.finish(running[0])
    assert not bureau.admission.load().refusing
    assert bureau.enter(demand()).waits


def test_a_tenant_with_less_than_its_share_displaces_the_newest_of_the_one_with_most() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=4))
    bureau.fill()
    many = [bureau.enter(demand("many")) for _ in range(4)]
    assert not bureau.admission.load().refusing
    few = bureau.enter(demand("few"))
    assert few.waits
    assert isinstance(many[3].refusal, Overloaded)
    assert many[3].refusal.retry_after_s is not None
    bureau.enter(demand("few"))
    assert many[2].refusal is not None
    assert not bureau.admission.load().refusing, "a third tenant may come"
    with pytest.raises(Overloaded):
        bureau.enter(demand("few"))
    with pytest.raises(Overloaded):
        bureau.enter(demand("many"))
    assert [visitor.waits for visitor in many] == [True, True, False, False]


def test_places_follow_weights() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=8, tenant_weights={"big": 3.0}))
    bureau.fill()
    small = [bureau.enter(demand("small")) for _ in range(8)]
    for _ in range(6):
        bureau.enter(demand("big"))
    with pytest.raises(Overloaded):
        bureau.enter(demand("big"))
    assert sum(visitor.waits for visitor in small) == 2


def test_places_follow_weights_that_generations_tell_where_settings_name_none() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=8, tenant_weights={"named": 1.0}))
    bureau.fill()
    small = [bureau.enter(demand("small")) for _ in range(8)]
    for _ in range(6):
        bureau.enter(demand("big", weight=3.0))
    with pytest.raises(Overloaded):
        bureau.enter(demand("big", weight=3.0))
    with pytest.raises(Overloaded):
        bureau.enter(demand("small"))
    assert sum(visitor.waits for visitor in small) == 2
    named = [bureau.enter(demand("named", weight=1000.0)) for _ in range(1)]
    with pytest.raises(Overloaded):
        bureau.enter(demand("named", weight=1000.0))
    assert all(visitor.waits for visitor in named)


def test_batch_gives_its_places_to_interactive_but_for_a_tenth() -> None:
    bureau = Bureau(rules=AdmissionRules(max_waiting=10))
    bureau.fill()
    batch = [bureau.enter(demand(batch=True)) for _ in range(10)]
    assert not bureau.admission.load().refusing
    for _ in range(9):
        bureau.enter(demand())
    assert [visitor.waits for visitor in batch] == [True] + [False] * 9
    assert bureau.admission.load().refusing
    with pytest.raises(Overloaded):
        bureau.enter(demand())
    bureau.leave(batch[0])
    urgent = bureau.enter(demand())
    assert bureau.enter(demand(batch=True)).waits
    assert isinstance(urgent.refusal, Overloaded)


def test_a_deadline_before_the_expected_start_is_refused_and_one_after_it_waits() -> None:
    bureau = Bureau()
    running = bureau.fill()
    waiting = [bureau.enter(demand()) for _ in range(12)]
    for number, visitor in enumerate(running[:7]):
        if number < 5:
            hasty = bureau.enter(demand(batch=True), timeout_s=0.1)
            assert hasty.waits, "too little was seen yet"
        bureau.clock.pass_time(1)
        bureau.finish(visitor)
    assert [visitor.waits for visitor in waiting] == [False] * 7 + [True] * 5
    assert bureau.admission.load().expected_wait_ms == pytest.approx(5000, rel=0.2)
    told = r"expected wait of 2\.\d s must be within the time that the generation has left, 1\.0 s"
    with pytest.raises(Overloaded, match=told):
        bureau.enter(demand(prompt=90), timeout_s=1)
    assert bureau.enter(demand(prompt=90), timeout_s=10).waits
    with pytest.raises(Overloaded) as caught:
        bureau.enter(demand(prompt=490), timeout_s=12)
    assert caught.value.retry_after_s == pytest.approx(20, rel=0.5)


def test_a_generation_that_cost_more_than_expected_lets_others_go_first() -> None:
    bureau = Bureau()
    running = bureau.fill()
    a = [bureau.enter(demand("a")) for _ in range(4)]
    b = [bureau.enter(demand("b")) for _ in range(4)]
    bureau.finish(running[0])
    bureau.admission.settle(a[0], 70)
    for visitor in running[1:5]:
        bureau.finish(visitor)
    assert bureau.went == [a[0], *b[:3], b[3]]


def test_what_went_without_waiting_is_neither_charged_nor_given_back() -> None:
    bureau = Bureau()
    running = bureau.fill()
    a = [bureau.enter(demand("filler")) for _ in range(2)]
    b = [bureau.enter(demand("b")) for _ in range(2)]
    bureau.admission.settle(running[0], 500)
    bureau.admission.settle(running[1], 0)
    for visitor in running[:4]:
        bureau.finish(visitor)
    assert bureau.went == [a[0], b[0], a[1], b[1]]


def test_the_use_of_a_lane_that_others_cannot_use_is_no_debt() -> None:
    bureau = Bureau(window=100)
    running = bureau.fill()
    blocking = bureau.enter(demand("a", 90, lane=Lane.LONG))
    for _ in range(3):
        bureau.enter(demand("a", 90, lane=Lane.LONG))
    bureau.finish(running[0])
    assert blocking.leg is not None
    short = [bureau.enter(demand("b", 10, output=100)) for _ in range(9)]
    for visitor in running[1:6]:
        bureau.finish(visitor)
    assert sum(visitor.leg is not None for visitor in short) == 5
    for _ in range(3):
        bureau.enter(demand("b", 90, lane=Lane.LONG))
    for visitor in short:
        bureau.leave(visitor)
    for visitor in running[6:]:
        bureau.finish(visitor)
    bureau.went.clear()
    bureau.begin(blocking)
    for _ in range(2):
        bureau.begin(bureau.went[-1])
    assert [visitor.demand.tenant for visitor in bureau.went] == ["a", "a", "b"]


def test_a_lane_that_had_no_room_does_not_take_all_turns_of_its_tenant_later() -> None:
    bureau = Bureau(window=100)
    running = bureau.fill()
    bureau.finish(running[0])
    blocking = bureau.enter(demand("a", 95, lane=Lane.LONG))
    for lane in (Lane.LONG, Lane.SHORT):
        for _ in range(9):
            bureau.enter(demand("a", 10, output=90, lane=lane))
    for visitor in running[1:6]:
        bureau.finish(visitor)
    assert [visitor.demand.lane for visitor in bureau.went] == [Lane.LONG, *[Lane.SHORT] * 5]
    bureau.went.clear()
    bureau.begin(blocking)
    for visitor in running[6:]:
        bureau.finish(visitor)
    assert {visitor.demand.lane for visitor in bureau.went} == set(Lane)


def test_a_new_one_goes_where_no_returning_one_could() -> None:
    bureau = Bureau(("a", "b"), window=100)
    occupied = bureau.enter(demand(prompt=50))
    assert occupied.leg is not None
    other = {"a": "b", "b": "a"}[occupied.leg.replica.name]
    returning = bureau.resume(demand(prompt=90, avoid=frozenset({(other, 1)})))
    assert returning.waits
    new = [bureau.enter(demand(prompt=40)) for _ in range(3)]
    assert [visitor.leg and visitor.leg.replica.name for visitor in new] == [other, other, None]
    bureau.begin(occupied)
    assert returning.leg is not None
    assert new[2].waits


def test_one_that_a_replica_refused_goes_before_new_ones_and_holds_up_nobody_elsewhere() -> None:
    bureau = Bureau(("a", "b"), AdmissionRules(max_waiting=2))
    running = bureau.fill()
    new = bureau.enter(demand())
    refused = bureau.enter(demand(avoid=frozenset({("a", 1)})))
    with pytest.raises(Overloaded):
        bureau.enter(demand(avoid=frozenset({("a", 1)})))
    with pytest.raises(Unavailable, match="2 failed it"):
        bureau.enter(demand(avoid=frozenset({("a", 1), ("b", 1)})))
    bureau.die("b")
    for visitor in running:
        bureau.finish(visitor)
    assert bureau.went == [new]
    assert refused.waits
    bureau.come("b")
    bureau.admission.pump()
    assert bureau.went == [new, refused]


def test_what_is_cached_where_it_goes_is_not_charged() -> None:
    bureau = Bureau()
    running = bureau.fill()
    a = [bureau.enter(demand("a", 90)) for _ in range(2)]
    b = [bureau.enter(demand("b", 40)) for _ in range(2)]
    bureau.cache("a", 80)
    bureau.finish(running[0])
    bureau.fleet.index.forget("a")
    for visitor in running[1:4]:
        bureau.finish(visitor)
    assert bureau.went == [a[0], b[0], a[1], b[1]]


def test_pumping_while_pumping_goes_on_where_it_was() -> None:
    bureau = Bureau()
    running = bureau.fill()
    visitors = [bureau.enter(demand()) for _ in range(3)]
    left = bureau.enter(demand())

    for visitor in visitors[:2]:
        go = visitor.go

        def go_and_pump(decision: object, go: object = go) -> None:
            go(decision)  # type: ignore[operator]
            bureau.admission.pump()
            bureau.leave(left)

        visitor.go = go_and_pump  # type: ignore[method-assign]
    for visitor in running:
        assert visitor.leg is not None
        visitor.leg.end("finished")
    bureau.admission.pump()
    assert bureau.went == visitors
    assert left.waits is False
    assert left.leg is None
