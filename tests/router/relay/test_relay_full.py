"""What becomes of a generation whose replicas are full."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.shared.errors import Code, Overloaded
from services.shared.stream.events import Failed, Finished, Tokens
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.world import World
from tests.scripted_source import oracle

NOTHING_IS_LEFT = "no replica can take the generation; of 2: 2 failed it"


def full(retry_after_s: float) -> Overloaded:
    return Overloaded("too many wait", retry_after_s=retry_after_s)


def test_a_replica_that_is_full_is_passed_over() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.sources["a"].refuse = full(3)
    world.relay.submit(submission("x", recorder))
    world.clock.pass_time(0)
    world.play()
    assert recorder.ids == oracle((1, 2, 3), 4)
    assert isinstance(recorder.last, Finished)


@pytest.mark.parametrize("times", [(7, 3), (3, 7)])
def test_where_all_are_full_the_caller_is_told_at_once_with_the_shorter_time(
    times: tuple[float, float],
) -> None:
    world, recorder = World("a", "b"), Recorder()
    for source, retry_after_s in zip(world.sources.values(), times, strict=True):
        source.refuse = full(retry_after_s)
    world.relay.submit(submission("x", recorder))
    world.clock.pass_time(0)
    world.clock.pass_time(0)
    assert recorder.events == [
        Failed(
            code=Code.RESOURCE_EXHAUSTED,
            message=f"too many wait; {NOTHING_IS_LEFT}",
            retryable=True,
            retry_after_s=3,
        )
    ]
    assert world.outcomes[0].attempts == 2


def test_one_that_was_refused_waits_as_new_where_a_replica_only_lacks_room() -> None:
    world = World("a", "b", room=RoomRules(slots=1, window=dict.fromkeys(Lane, 1000)))
    recorders = {name: Recorder() for name in "xyzvw"}
    world.sources["a"].refuse = full(3)
    for name, recorder in recorders.items():
        world.relay.submit(submission(name, recorder))
        world.clock.pass_time(0)
    assert list(world.sources["b"].running) == ["x", "y"]
    assert world.admission.waiting == 3
    for _ in range(30):
        world.play(1)
        world.clock.pass_time(0)
    for recorder in recorders.values():
        assert recorder.ids == oracle((1, 2, 3), 4)
        assert isinstance(recorder.last, Finished)


def test_a_replica_that_says_it_refuses_is_sent_nothing_until_it_says_otherwise() -> None:
    room = RoomRules(slots=4, window=dict.fromkeys(Lane, 1000))
    world, recorder = World("a", room=room), Recorder()
    load = world.sources["a"].load()
    world.fleet.tell_load("a", Load(state=load.state, refusing=True))
    world.relay.submit(submission("x", recorder))
    assert world.admission.waiting == 1
    world.fleet.tell_load("a", load)
    assert list(world.sources["a"].running) == ["x"]


def test_what_another_router_has_begun_goes_first_and_is_never_too_many() -> None:
    room = RoomRules(slots=1, window=dict.fromkeys(Lane, 1000))
    world = World("a", room=room, max_waiting=1)
    for name in "xyz":
        world.relay.submit(submission(name, Recorder()))
    assert world.relay.load().refusing
    begun, recorder = submission("begun", Recorder()).generation, Recorder()
    begun = replace(begun, generated_ids=oracle((1, 2, 3), 2))
    world.relay.submit(Submission(begun, "", recorder))
    world.lose("a", "x", Failed(code=Code.INTERNAL, message="broken"))
    assert list(world.sources["a"].running) == ["y", "begun"]
    world.play()
    assert [event.ids for event in recorder.events if isinstance(event, Tokens)] == [
        [token] for token in oracle((1, 2, 3), 4)[2:]
    ]


def test_a_replica_that_refuses_what_is_new_is_sent_what_goes_on() -> None:
    room = RoomRules(slots=4, window=dict.fromkeys(Lane, 1000))
    world, recorder = World("a", "b", room=room), Recorder()
    world.relay.submit(submission("x", recorder))
    world.play(3)
    load = replace(world.sources["b"].load(), refusing=True)
    world.fleet.tell_load("b", load)
    world.die("a")
    assert list(world.sources["b"].running) == ["x"]


def test_a_router_in_which_nothing_may_wait_does_not_refuse_while_it_has_places() -> None:
    world = World("a", max_waiting=0)
    assert not world.relay.load().refusing
