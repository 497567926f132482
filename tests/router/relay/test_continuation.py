"""What a caller sees of a generation that went on at another replica: one output, one account."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.balancing.versions import Versions, VersionShare
from services.router.relay.retry_budget import RetryRules
from services.router.status import Status
from services.shared.errors import Code
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Failed,
    Finished,
    FinishReason,
    Timeline,
    Tokens,
    Usage,
)
from services.shared.stream.generation import Generation, RoutingHints, Sampling, Stopping
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.identity import IDENTITY
from tests.router.world import LOST, WAIT_S, World
from tests.scripted_source import SEED, oracle

PROMPT = (1, 2, 3)
WHOLE = oracle(PROMPT, 4)


def begin(world: World, name: str = "x", *, tokens: int, **options: object) -> Recorder:
    """A generation at replica a that has brought so many tokens."""
    recorder = Recorder()
    world.relay.submit(submission(name, recorder, **options))
    assert world.where(name) == "a"
    for _ in range(tokens + 1):
        world.sources["a"].step()
    assert len(recorder.ids) == tokens
    return recorder


def lose_at_a(world: World, failed: Failed = LOST) -> None:
    """Replica a fails one generation; what comes to others before is played out."""
    for number in range(100):
        world.relay.submit(submission(f"lost{number}", Recorder()))
        if world.where(f"lost{number}") == "a":
            world.lose("a", f"lost{number}", failed)
            return
    raise AssertionError("replica a takes nothing")


def status(world: World, name: str) -> Status:
    return world.fleet[name].status


def test_all_that_was_asked_for_is_asked_again_with_the_seed_and_the_tokens_so_far() -> None:
    world, recorder = World("a", "b"), Recorder()
    asked = Generation(
        request_id="x",
        model="m",
        prompt_ids=PROMPT,
        generated_ids=WHOLE[:1],
        sampling=Sampling(temperature=0.5, presence_penalty=1.0, logit_bias=((5, 1.0),)),
        stopping=Stopping(max_tokens=4, min_tokens=3, stop_token_ids=(9,)),
    )
    world.relay.submit(Submission(asked, "", recorder))
    for _ in range(3):
        world.sources["a"].step()
    world.lose("a", "x")
    sampling = replace(asked.sampling, seed=SEED)
    expected = replace(
        asked,
        sampling=sampling,
        generated_ids=WHOLE[:3],
        routing=RoutingHints(model_version=IDENTITY.version),
    )
    assert world.sources["b"].submitted[0].generation == expected
    world.play()
    assert [event for event in recorder.events if isinstance(event, Tokens)] == [
        Tokens(position, [WHOLE[position]]) for position in (1, 2, 3)
    ]


def test_the_account_is_that_of_one_output_with_the_times_that_the_caller_saw() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder))
    world.clock.pass_time(1)
    first = world.sources["a"].running["x"]
    first.emit(Accepted(prompt_tokens=3, cached_tokens=CachedTokens(device=1, peer=1), seed=5))
    world.clock.pass_time(2)
    first.emit(Tokens(0, [WHOLE[0]]))
    world.lose("a", "x")
    second = world.sources["b"].running.pop("x")
    second.emit(Accepted(prompt_tokens=3, cached_tokens=CachedTokens(device=3), seed=5))
    world.clock.pass_time(3)
    second.emit(
        Finished(
            reason=FinishReason.STOP_TOKEN,
            stop_token_id=9,
            usage=Usage(prompt_tokens=3, cached_tokens=3, completion_tokens=1),
            timeline=Timeline(queued_us=7, decode_us=7, preemptions=2, continuations=1),
        )
    )
    assert recorder.last == Finished(
        reason=FinishReason.STOP_TOKEN,
        stop_token_id=9,
        usage=Usage(prompt_tokens=3, cached_tokens=2, completion_tokens=1),
        timeline=Timeline(
            queued_us=1_000_000,
            prefill_us=2_000_000,
            decode_us=3_000_000,
            preemptions=2,
            continuations=2,
            cached_tokens=CachedTokens(device=1, peer=1),
        ),
    )


def test_a_replica_that_is_itself_a_router_tells_on_why_it_chose() -> None:
    world, recorder = World("a"), Recorder()
    world.relay.submit(submission("x", recorder))
    world.sources["a"].running["x"].emit(
        Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=5, routed="nearest")
    )
    (accepted,) = recorder.events
    assert isinstance(accepted, Accepted)
    assert accepted.routed.endswith("1 ready; nearest")


def test_a_prompt_alone_is_computed_elsewhere_and_brings_no_token() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder, max_tokens=0))
    world.lose("a", "x")
    world.play()
    assert [type(event) for event in recorder.events] == [Accepted, Finished]


def test_an_output_goes_on_with_the_version_that_began_it() -> None:
    versions = Versions([VersionShare(fingerprint="v1"), VersionShare(fingerprint="v2")])
    world = World("a", "b", "c", versions=versions)
    for name, version in (("a", "v1"), ("b", "v2"), ("c", "v1")):
        world.come_again(name, version)
    recorder = begin(world, tokens=2)
    world.lose("a", "x")
    assert world.where("x") == "c"
    world.lose("c", "x")
    assert world.where("x") is None
    world.play()
    world.die("a")
    world.come_again("a", "v1")
    assert world.where("x") == "a"
    world.play()
    assert recorder.ids == WHOLE


def test_what_was_not_accepted_yet_may_begin_with_another_version() -> None:
    versions = Versions([VersionShare(fingerprint="v1"), VersionShare(fingerprint="v2")])
    world, recorder = World("a", "b", versions=versions), Recorder()
    world.come_again("a", "v1")
    world.come_again("b", "v2")
    world.relay.submit(submission("x", recorder))
    world.lose("a", "x")
    assert world.where("x") == "b"


def test_a_replica_that_failed_it_gets_it_again_only_after_a_restart() -> None:
    world = World("a")
    recorder = begin(world, tokens=2)
    world.lose("a", "x")
    world.pass_time(WAIT_S - 1)
    assert world.where("x") is None
    world.die("a")
    world.come_again("a")
    assert world.where("x") == "a"
    world.play()
    assert recorder.ids == WHOLE


def test_a_generation_that_brings_tokens_everywhere_may_be_lost_any_number_of_times() -> None:
    world, recorder = World("a", "b"), Recorder()
    world.relay.submit(submission("x", recorder, max_tokens=20))
    for count in range(1, 19):
        name = world.where("x")
        assert name is not None
        world.sources[name].step()
        world.sources[name].step()
        assert len(recorder.ids) == count
        world.die(name)
        world.pass_time(6)
        world.come_again(name)
    world.play()
    assert recorder.ids == oracle(PROMPT, 20)
    assert isinstance(recorder.last, Finished)
    assert recorder.last.timeline.continuations == 18


def test_continuations_beyond_the_budget_end_with_the_reason_and_new_ones_earn_it_again() -> None:
    world = World("a", "b", retries=RetryRules(share=0.5, burst=1))
    recorder = begin(world, tokens=1)
    world.lose("a", "x")
    world.sources["b"].step()
    world.lose("b", "x")
    message = "the session ended; the retry budget is used up"
    assert recorder.last == Failed(code=Code.UNAVAILABLE, message=message, retryable=True)
    assert world.budget.refused == 1
    assert world.outcomes[0].error == message
    others = [Recorder(), Recorder()]
    for number, other in enumerate(others):
        world.relay.submit(submission(f"y{number}", other))
    name = world.where("y1")
    assert name is not None
    world.lose(name, "y1")
    world.play()
    assert others[1].ids == WHOLE


def test_what_a_replica_did_wrong_counts_against_it_and_the_callers_faults_do_not() -> None:
    world = World("a", "b")
    for _ in range(5):
        lose_at_a(world, Failed(code=Code.INVALID_ARGUMENT, message="token 5000"))
        lose_at_a(world, Failed(code=Code.RESOURCE_EXHAUSTED, message="full", retryable=True))
    assert status(world, "a") is Status.READY
    for _ in range(3):
        lose_at_a(world, replace(LOST, code=Code.DATA_LOSS))
    assert status(world, "a") is Status.EJECTED


def test_an_output_that_ends_well_shows_that_the_replica_is_well() -> None:
    world = World("a", "b")
    for _ in range(3):
        lose_at_a(world)
        lose_at_a(world)
        for number in range(4):
            world.relay.submit(submission(f"x{number}", Recorder()))
        assert "a" in {world.where(f"x{number}") for number in range(4)}
        world.play()
        assert status(world, "a") is Status.READY


def test_first_tokens_that_come_late_count_against_the_replica() -> None:
    world = World("a", "b")
    for number in range(6):
        world.relay.submit(submission(f"x{number}", Recorder()))
    assert len(world.sources["a"].running) == 3
    for _ in range(31):
        world.pass_time(1)
    world.play()
    assert status(world, "a") is Status.EJECTED


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.DATA_LOSS])
def test_a_loss_that_nobody_makes_good_is_told_as_unavailable(code: Code) -> None:
    world = World("a")
    recorder = begin(world, tokens=2)
    world.lose("a", "x", Failed(code=code, message="broken", retryable=True))
    world.clock.pass_time(WAIT_S)
    assert isinstance(recorder.last, Failed)
    assert (recorder.last.code, recorder.last.retryable) == (Code.UNAVAILABLE, True)
    assert recorder.last.message.startswith("broken; no replica can take the generation")


def test_a_deadline_while_it_waits_for_another_replica() -> None:
    world = World("a")
    recorder = begin(world, tokens=2, timeout_ms=5000)
    world.lose("a", "x")
    world.clock.pass_time(5)
    message = "5000 ms are over after 2 tokens"
    assert recorder.last == Failed(code=Code.DEADLINE_EXCEEDED, message=message)
    assert world.admission.waiting == 0
