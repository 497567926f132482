"""What becomes of a generation whose replica fails, of its deadline, and of its figures."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from services.router.relay.relay import LEAVING
from services.router.relay.relayed import MAX_FRUITLESS
from services.shared.errors import Code, NotFound, Overloaded, Unavailable
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CancelReason,
    Failed,
    Finished,
    Tokens,
)
from services.shared.stream.load import ReplicaState
from tests.recorder import Recorder, submission
from tests.router.world import LOST, WAIT_S, World
from tests.scripted_source import SEED, oracle


def test_a_generation_passes_whole_and_its_record_tells_the_way() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder))
    world.play()
    assert recorder.ids == oracle((1, 2, 3), 4)
    assert [type(event) for event in recorder.events] == [Accepted, *[Tokens] * 4, Finished]
    (outcome,) = world.outcomes
    assert (outcome.end, outcome.replica, outcome.attempts) == ("max_tokens", "a", 1)
    assert outcome.routed.endswith("1 ready")
    assert list(outcome.output_ids) == recorder.ids
    (note,) = world.notes.entries
    assert world.sources["a"].submitted[0].traceparent == note.attempts[0].traceparent
    assert note.attempts[0].ends == ["finished"]


@pytest.mark.parametrize("accepted", [False, True])
def test_a_loss_before_the_first_token_is_made_good_elsewhere(accepted: bool) -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder))
    if accepted:
        world.sources["a"].step()
    world.lose("a", "x")
    world.play()
    assert recorder.ids == oracle((1, 2, 3), 4)
    assert recorder.accepted() == 1
    assert isinstance(recorder.last, Finished)
    seed = world.sources["b"].submitted[0].generation.sampling.seed
    assert seed == (SEED if accepted else None)
    (outcome,) = world.outcomes
    assert (outcome.attempts, outcome.replica, outcome.setback) == (2, "b", "the session ended")
    (note,) = world.notes.entries
    assert [one.replica for one in note.destinations] == ["a", "b"]
    assert [one.ends for one in note.attempts] == [["failed: unavailable"], ["finished"]]
    assert world.outstanding() == {"a": 0, "b": 0}


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_a_loss_after_tokens_is_made_good_elsewhere(tokens: int) -> None:
    world, lost, other = World("a", "b"), Recorder(), Recorder()
    world.relay.submit(submission("lost", lost))
    world.relay.submit(submission("other", other))
    for _ in range(tokens + 1):
        world.sources["a"].step()
    world.lose("a", "lost")
    world.play()
    assert lost.ids == other.ids == oracle((1, 2, 3), 4)
    assert lost.accepted() == 1
    sent = world.sources["b"].submitted[-1].generation
    assert list(sent.generated_ids) == lost.ids[:tokens]
    assert sent.sampling.seed == SEED
    assert isinstance(lost.last, Finished)
    assert lost.last.timeline.continuations == 1
    assert lost.last.usage.completion_tokens == 4
    assert world.outstanding() == {"a": 0, "b": 0}


def test_a_loss_after_the_last_token_brings_the_end_alone() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder, max_tokens=1))
    world.sources["a"].step()
    world.sources["a"].running["x"].emit(Tokens(0, oracle((1, 2, 3), 1)))
    world.lose("a", "x")
    world.sources["b"].step()
    assert recorder.ids == oracle((1, 2, 3), 1)
    assert [type(event) for event in recorder.events] == [Accepted, Tokens, Finished]


def test_what_no_other_replica_can_mend_is_told_as_it_is() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder))
    failed = Failed(code=Code.INVALID_ARGUMENT, message="token 5000", field="prompt_ids")
    world.lose("a", "x", failed)
    assert recorder.events == [failed]
    assert not world.sources["b"].submitted


def test_no_replica_is_tried_twice_and_fruitless_ones_are_bounded() -> None:
    names = [f"r{number}" for number in range(MAX_FRUITLESS + 2)]
    world, recorder = World(*names), Recorder()
    world.relay.submit(submission("x", recorder))
    for name in names[:MAX_FRUITLESS]:
        assert len(world.sources[name].submitted) == 1
        world.lose(name, "x")
    message = "the session ended; 3 replicas in a row brought no token"
    assert recorder.events == [replace(LOST, message=message)]
    assert sum(len(source.submitted) for source in world.sources.values()) == MAX_FRUITLESS


def test_without_another_replica_the_failure_is_told_with_the_state_of_the_fleet() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder))
    world.lose("a", "x")
    assert recorder.events == [], "a replica may come"
    world.clock.pass_time(WAIT_S)
    message = (
        "the session ended; no replica can take the generation; of 1: 1 failed it; "
        "waited 30 s for one"
    )
    assert recorder.events == [Failed(code=Code.UNAVAILABLE, message=message, retryable=True)]


@pytest.mark.parametrize("error", [Unavailable("down"), Overloaded("full")])
def test_a_replica_that_does_not_take_it_at_once_is_passed_over(
    error: Unavailable | Overloaded,
) -> None:
    world, recorder = World("a", "b"), Recorder()
    world.sources["a"].refuse = error
    world.relay.submit(submission("x", recorder))
    world.clock.pass_time(0)
    assert "x" in world.sources["b"].running
    world.sources["b"].refuse = error
    nowhere = Recorder()
    world.relay.submit(submission("y", nowhere))
    assert nowhere.events == []
    world.clock.pass_time(0)
    world.clock.pass_time(WAIT_S)
    assert isinstance(nowhere.last, Failed)
    assert "of 2: 2 failed it" in nowhere.last.message
    assert world.outcomes[0].end == f"failed: {error.code.name.lower()}"
    world.play()
    assert world.outstanding() == {"a": 0, "b": 0}


def test_late_events_of_a_replica_that_was_given_up_are_ignored() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder))
    late = world.sources["a"].running["x"]
    world.lose("a", "x")
    late.emit(Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=99))
    late.emit(Tokens(0, [999]))
    late.emit(LOST)
    world.play()
    assert recorder.ids == oracle((1, 2, 3), 4)
    late.emit(Tokens(4, [999]))
    assert isinstance(recorder.last, Finished)


def test_another_model_is_not_found() -> None:
    world = World("a")
    with pytest.raises(NotFound, match="model 'gpt' is not served here"):
        world.relay.submit(submission("x", Recorder(), model="gpt"))


def test_a_cancel_crosses_with_its_reason_and_ends_everything() -> None:
    world, recorder = World("a"), Recorder()
    cancel = world.relay.submit(submission("x", recorder, timeout_ms=5000))
    cancel(CancelReason.STOP_TEXT)
    cancel(CancelReason.CLIENT_GONE)
    world.clock.pass_time(10)
    assert recorder.events == []
    assert world.sources["a"].cancelled == [("x", CancelReason.STOP_TEXT)]
    assert [outcome.end for outcome in world.outcomes] == ["cancelled: stop_text"]
    assert world.outstanding() == {"a": 0}


def test_a_deadline_fails_the_stream_and_cancels_at_the_replica() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder, timeout_ms=5000))
    world.play(2)
    world.clock.pass_time(4.9)
    assert len(recorder.events) == 2
    world.clock.pass_time(0.2)
    message = "5000 ms are over after 1 tokens"
    assert recorder.last == Failed(code=Code.DEADLINE_EXCEEDED, message=message)
    assert world.sources["a"].cancelled == [("x", CancelReason.DEADLINE)]


def test_each_hop_is_told_the_time_that_is_left() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder, timeout_ms=5000))
    world.clock.pass_time(2)
    world.lose("a", "x")
    told = [
        source.submitted[0].generation.quality_of_service.timeout_ms
        for source in world.sources.values()
    ]
    assert told == [5000, 3000]
    world.play()
    assert all(alarm.cancelled for alarm in world.clock.alarms)


async def test_a_draining_router_takes_nothing_and_is_done_with_its_last_generation() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder))
    assert world.relay.load().state is ReplicaState.READY
    drain = asyncio.ensure_future(world.relay.drain())
    await asyncio.sleep(0)
    assert world.relay.load().state is ReplicaState.DRAINING
    with pytest.raises(Unavailable, match="draining"):
        world.relay.submit(submission("y", Recorder()))
    assert not drain.done()
    world.play()
    await drain
    assert isinstance(recorder.last, Finished)


async def test_a_drain_out_of_time_breaks_off_retryably() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder))
    await world.relay.drain(0.001)
    assert recorder.last == LEAVING
    assert LEAVING.retryable
    assert world.sources["a"].cancelled == [("x", CancelReason.UNSPECIFIED)]
