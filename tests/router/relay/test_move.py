"""Generations that leave a replica which may not keep them: they stay until another has a place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.balancing.versions import Versions, VersionShare
from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.router.relay.retry_budget import RetryRules
from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import CancelReason, Failed, Finished, Tokens
from services.shared.stream.load import ReplicaState
from tests.recorder import Recorder, submission
from tests.router.world import LOST, WAIT_S, World
from tests.scripted_source import Playing, oracle

PROMPT = (1, 2, 3)
WHOLE = oracle(PROMPT, 4)
ONE_EACH = RoomRules(slots=1, window={Lane.SHORT: 3, Lane.LONG: 3})
"""Two places a replica, for one prompt at a time."""


def begin(world: World, *names: str) -> list[Recorder]:
    recorders = [Recorder() for _ in names]
    for name, recorder in zip(names, recorders, strict=True):
        world.relay.submit(submission(name, recorder))
    return recorders


def assert_clean(world: World, *recorders: Recorder) -> None:
    """All are whole and nothing is left over."""
    for recorder in recorders:
        assert recorder.ids == WHOLE
        assert recorder.accepted() == 1
        assert isinstance(recorder.last, Finished)
    for replica in world.fleet:
        assert (replica.running, replica.outstanding_tokens, replica.pending_tokens) == (0, 0, 0)
    assert world.admission.waiting == 0
    assert not world.clock.alarms


def test_a_drain_moves_generations_wherever_they_are_and_costs_no_budget() -> None:
    world = World("a", "b", retries=RetryRules(share=0, burst=0))
    recorders = []
    for steps in range(4):
        recorders += begin(world, f"x{steps}", f"y{steps}")
        world.play(1)
    moved = list(world.sources["a"].running)
    world.fleet.drain("a")
    world.fleet.sweep()
    assert world.sources["a"].cancelled == [(name, CancelReason.MOVED) for name in moved]
    assert set(world.sources["b"].running) >= set(moved)
    world.play()
    assert_clean(world, *recorders)
    assert {outcome.attempts for outcome in world.outcomes} == {1, 2}


def test_where_no_other_has_room_a_generation_goes_on_where_it_is_until_one_has() -> None:
    world = World("a", "b", room=ONE_EACH)
    mover, other = begin(world, "mover", "other")
    assert (world.where("mover"), world.where("other")) == ("a", "b")
    world.fleet.drain("a")
    world.fleet.sweep()
    assert world.where("mover") == "a", "a prompt waits at b"
    for _ in range(2):
        world.sources["a"].step()
    assert mover.ids == WHOLE[:1]
    assert world.where("mover") == "a"
    for _ in range(2):
        world.sources["b"].step()
    assert world.where("mover") == "b"
    assert world.fleet["b"].pending_tokens == len(PROMPT) + 1, "with the token that came meanwhile"
    world.play()
    assert_clean(world, mover, other)


def test_a_token_that_lets_its_own_generation_move_is_not_drawn_again() -> None:
    world = World("a", "b", room=RoomRules(slots=1, window=dict.fromkeys(Lane, 1000)))
    recorders = begin(world, "w", "x", "y", "z")
    movers = list(world.sources["a"].running)
    assert len(movers) == 2
    world.fleet.drain("a")
    world.fleet.sweep()
    world.sources["a"].step()
    assert list(world.sources["a"].running) == movers
    # Now there is room, and nobody has looked yet.
    world.fleet.tell_load("b", replace(world.sources["b"].load(), slots=8))
    world.sources["a"].step()
    assert not world.sources["a"].running
    given = [list(sent.generation.generated_ids) for sent in world.sources["b"].submitted[-2:]]
    assert given == [WHOLE[:1], []]
    world.play()
    assert_clean(world, *recorders)


def test_a_move_that_waits_keeps_to_the_version_that_accepted_meanwhile() -> None:
    versions = Versions([VersionShare(fingerprint="v1"), VersionShare(fingerprint="v2")])
    world = World("a", "b", "c", room=ONE_EACH, versions=versions)
    for name, version in (("a", "v1"), ("b", "v2"), ("c", "v1")):
        world.come_again(name, version)
    begin(world, "mover", "x", "y")
    assert world.where("mover") == "a"
    world.fleet.drain("a")
    world.fleet.sweep()
    assert world.where("mover") == "a", "prompts wait everywhere"
    for _ in range(2):
        world.sources["a"].step()
    for _ in range(2):
        world.sources["b"].step()
    assert world.where("mover") == "a", "b is of another version"
    for _ in range(2):
        world.sources["c"].step()
    assert world.where("mover") == "c"


def test_without_another_replica_a_draining_one_finishes_what_it_has() -> None:
    world = World("a")
    recorders = begin(world, "x", "y")
    world.play(2)
    world.relay.evacuate("a")
    for _ in range(2):
        world.relay.evacuate("a")
    world.clock.pass_time(WAIT_S)
    assert all(recorder.ids == WHOLE[:1] for recorder in recorders)
    assert set(world.sources["a"].running) == {"x", "y"}
    world.play()
    assert_clean(world, *recorders)


@pytest.mark.parametrize("ends", ["finishes", "is lost", "is cancelled", "runs out of time"])
def test_what_becomes_of_one_that_was_to_move_and_had_no_place_yet(ends: str) -> None:
    world, recorder = World("a"), Recorder()
    cancel = world.relay.submit(submission("x", recorder, timeout_ms=60_000))
    world.play(3)
    world.relay.evacuate("a")
    assert world.admission.waiting == 1
    match ends:
        case "finishes":
            world.play()
            assert isinstance(recorder.last, Finished)
        case "is lost":
            world.lose("a", "x")
            assert world.admission.waiting == 1
            world.die("a")
            world.come_again("a")
            assert world.where("x") == "a"
            world.play()
            assert isinstance(recorder.last, Finished)
        case "is cancelled":
            cancel(CancelReason.CLIENT_GONE)
            assert world.sources["a"].cancelled == [("x", CancelReason.CLIENT_GONE)]
        case _:
            world.clock.pass_time(61)
            assert isinstance(recorder.last, Failed)
            assert recorder.last.code is Code.DEADLINE_EXCEEDED
    assert world.admission.waiting == 0
    assert world.outstanding() == {"a": 0}
    assert world.fleet["a"].running == 0
    assert recorder.ids == WHOLE[: len(recorder.ids)]


def test_a_stuck_replica_is_left_and_what_it_says_late_is_ignored() -> None:
    world = World("a", "b")
    recorders = begin(world, "x", "y")
    world.play(2)
    late: list[Playing] = list(world.sources["a"].running.values())
    for _ in range(6):
        world.clock.pass_time(1)
        world.report("b")
        world.fleet.sweep()
    assert world.fleet["a"].status is Status.STUCK
    assert set(world.sources["b"].running) == {"x", "y"}
    for playing in late:
        playing.emit(Tokens(1, [999]))
        playing.emit(LOST)
    world.play()
    assert_clean(world, *recorders)


def test_a_move_is_no_fruitless_try() -> None:
    world = World("a", "b", "c", "d", "e")
    (recorder,) = begin(world, "x")
    for _ in range(2):
        name = world.where("x")
        assert name is not None
        world.relay.evacuate(name)
    for _ in range(2):
        name = world.where("x")
        assert name is not None
        world.lose(name, "x")
    world.play()
    assert_clean(world, recorder)
    assert world.outcomes[0].attempts == 5


async def test_a_router_that_leaves_breaks_off_what_waits_first() -> None:
    world = World("a", room=ONE_EACH)
    recorders = begin(world, "x", "y", "z")
    assert world.admission.waiting == 2
    await world.relay.drain(0.001)
    assert len(world.sources["a"].submitted) == 1
    for recorder in recorders:
        assert isinstance(recorder.last, Failed)
        assert (recorder.last.message, recorder.last.retryable) == ("the router is leaving", True)
    assert world.admission.waiting == 0


def test_an_engine_that_says_that_it_drains_is_left() -> None:
    world = World("a", "b")
    recorders = begin(world, "x", "y")
    world.play(2)
    world.sources["a"].state = ReplicaState.DRAINING
    world.pass_time(0.25)
    assert set(world.sources["b"].running) == {"x", "y"}
    world.play()
    assert_clean(world, *recorders)
