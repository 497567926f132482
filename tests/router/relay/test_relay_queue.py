"""What becomes of generations for which no replica has room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.shared.errors import Code, Overloaded
from services.shared.stream.events import Cancel, CancelReason, Failed, Finished
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.world import WAIT_S, World
from tests.scripted_source import oracle

PLACES = 2
ROOM = RoomRules(slots=PLACES - 1, window=dict.fromkeys(Lane, 1000))


def of_tenant(tenant: str, asked: Submission) -> Submission:
    generation = asked.generation
    quality = replace(generation.quality_of_service, tenant=tenant)
    return replace(asked, generation=replace(generation, quality_of_service=quality))


def ask(world: World, *names: str, **options: object) -> dict[str, Recorder]:
    recorders = {name: Recorder() for name in names}
    for name, recorder in recorders.items():
        world.relay.submit(submission(name, recorder, **options))
    return recorders


def play(world: World, steps: int = 10) -> None:
    for _ in range(steps):
        for source in world.sources.values():
            source.step()


def test_what_waits_goes_when_another_has_ended_and_its_load_is_told() -> None:
    world = World("a", room=ROOM)
    recorders = ask(world, "x", "y", "z")
    assert list(world.sources["a"].running) == ["x", "y"]
    assert [note.waits for note in world.notes.entries] == [False, False, True]
    world.report("a")
    load = world.relay.load()
    assert (load.running, load.waiting, load.outstanding_tokens) == (2, 1, 8 + 7)
    play(world)
    assert all(isinstance(recorder.last, Finished) for recorder in recorders.values())
    assert not any(note.waits for note in world.notes.entries)
    assert world.relay.load().waiting == 0


def test_the_wait_at_the_router_is_told_apart_and_as_part_of_the_wait() -> None:
    world = World("a", room=ROOM)
    recorders = ask(world, "x", "y", "z")
    world.clock.pass_time(2)
    play(world)
    for name, waited_us in (("x", 0), ("z", 2_000_000)):
        end = recorders[name].last
        assert isinstance(end, Finished)
        assert end.timeline.admission_us == end.timeline.queued_us == waited_us


def test_a_prompt_that_is_computed_makes_room_for_the_next() -> None:
    world = World("a", room=RoomRules(slots=8, window=dict.fromkeys(Lane, 3)))
    ask(world, "x", "y")
    assert list(world.sources["a"].running) == ["x"]
    world.sources["a"].step()
    world.sources["a"].step()
    assert list(world.sources["a"].running) == ["x", "y"]


def test_a_deadline_expires_in_the_queue() -> None:
    world = World("a", room=ROOM)
    ask(world, "x", "y")
    waiting = ask(world, "z", timeout_ms=5000)["z"]
    world.clock.pass_time(5)
    assert waiting.events == [
        Failed(code=Code.DEADLINE_EXCEEDED, message="5000 ms are over after 0 tokens")
    ]
    assert world.relay.load().waiting == 0
    play(world)
    assert len(world.sources["a"].submitted) == 2


def test_a_cancelled_one_is_gone_at_once() -> None:
    world = World("a", room=ROOM)
    ask(world, "x", "y")
    cancel: Cancel = world.relay.submit(submission("z", Recorder()))
    assert world.relay.load().waiting == 1
    cancel(CancelReason.CLIENT_GONE)
    assert world.relay.load().waiting == 0
    play(world)
    assert len(world.sources["a"].submitted) == 2


def test_too_many_are_refused_with_when_to_come_again() -> None:
    world = World("a", room=ROOM, max_waiting=1)
    ask(world, "x", "y", "z")
    with pytest.raises(Overloaded) as caught:
        ask(world, "w")
    assert caught.value.retry_after_s is not None
    assert world.relay.load().refusing
    assert world.outcomes[-1].end == "failed: resource_exhausted"


def test_one_that_is_displaced_hears_why_and_when_to_come_again() -> None:
    world, displaced = World("a", room=ROOM, max_waiting=2), Recorder()
    ask(world, "x", "y")
    world.relay.submit(of_tenant("many", submission("z", Recorder())))
    world.relay.submit(of_tenant("many", submission("w", displaced)))
    world.relay.submit(of_tenant("few", submission("v", Recorder())))
    (failed,) = displaced.events
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == (Code.RESOURCE_EXHAUSTED, True)
    assert failed.retry_after_s is not None


def test_a_tenant_pays_for_what_came_and_not_for_what_might_have_come() -> None:
    world, cancels = World("a", room=ROOM), []
    ask(world, "x", "y")
    for name, tenant in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")):
        tokens = 400 if name == "a1" else 200
        asked = submission(name, Recorder(), max_tokens=tokens)
        cancels.append(world.relay.submit(of_tenant(tenant, asked)))
    play(world, 6)
    assert set(world.sources["a"].running) == {"a1", "b1"}
    cancels[0](CancelReason.STOP_TEXT)
    assert set(world.sources["a"].running) == {"b1", "a2"}


def test_a_single_engine_that_restarts_loses_no_stream() -> None:
    world = World("a", room=ROOM)
    recorders = ask(world, "x", "y", "z")
    play(world, 3)
    playing = list(world.sources["a"].running.values())
    world.sources["a"].running.clear()
    world.fleet.tell_load("a", None)
    for one in playing:
        one.emit(Failed(code=Code.UNAVAILABLE, message="the session ended", retryable=True))
    world.clock.pass_time(WAIT_S - 1)
    assert world.relay.load().waiting == 3
    world.come_again("a")
    play(world)
    for recorder in recorders.values():
        assert recorder.ids == oracle((1, 2, 3), 4)
        assert isinstance(recorder.last, Finished)
