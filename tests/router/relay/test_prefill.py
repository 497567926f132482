"""A prompt that one replica computes for another: it is never more than a help."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.router.relay.retry_budget import RetryRules
from services.router.status import Role, Status
from services.shared.addresses import next_address, root_address
from services.shared.errors import Code, Overloaded, Unavailable
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import CancelReason, Failed, Finished, Tokens
from services.shared.stream.generation import (
    CacheControl,
    Constraint,
    ConstraintKind,
    Generation,
    Output,
    QualityOfService,
    RoutingHints,
    Sampling,
    Stopping,
)
from services.shared.stream.source import Submission
from tests.recorder import Recorder, submission
from tests.router.identity import IDENTITY
from tests.router.world import BLOCK_TOKENS, LOST, World
from tests.scripted_source import ScriptedSource, oracle

LONG = tuple(range(4 * BLOCK_TOKENS + 1))
SHORT = (1, 2, 3)
NO_RETRIES = RetryRules(share=0, burst=0)
ROLES = {"d": Role.DECODE, "e": Role.DECODE, "p": Role.PREFILL}


def world_of(*names: str) -> World:
    """Replicas with the roles that their names stand for; no failure of theirs is retried."""
    return World(*names, retries=NO_RETRIES, roles={name: ROLES[name] for name in names})


def sent(source: ScriptedSource) -> list[Generation]:
    return [one.generation for one in source.submitted]


def begin(world: World, prompt: tuple[int, ...] = LONG, name: str = "x") -> Recorder:
    recorder = Recorder()
    world.relay.submit(submission(name, recorder, prompt_ids=prompt))
    return recorder


def assert_whole(world: World, recorder: Recorder, prompt: tuple[int, ...] = LONG) -> None:
    assert recorder.ids == oracle(prompt, 4)
    assert isinstance(recorder.last, Finished)
    assert_nothing_is_left(world)


def assert_nothing_is_left(world: World) -> None:
    assert not any(source.running for source in world.sources.values())
    for replica in world.fleet:
        assert (replica.running, replica.outstanding_tokens, replica.pending_tokens) == (0, 0, 0)
    assert all(alarm.cancelled for alarm in world.clock.alarms)


def tell_blocks(world: World, name: str, blocks: int, prompt: tuple[int, ...] = LONG) -> None:
    addresses = [root_address(IDENTITY.version, "", b"")]
    for start in range(0, blocks * BLOCK_TOKENS, BLOCK_TOKENS):
        addresses.append(next_address(addresses[-1], prompt[start : start + BLOCK_TOKENS]))
    world.fleet.tell_blocks(name, BlockEvents(sequence=1, snapshot=True, stored=addresses[1:]))


def test_both_get_it_at_once_and_the_one_that_answers_is_told_where_its_blocks_are() -> None:
    world = world_of("d", "p")
    recorder = begin(world)
    (there,), (here,) = sent(world.sources["p"]), sent(world.sources["d"])
    assert (there.stopping, tuple(there.prompt_ids)) == (Stopping(max_tokens=0), LONG)
    assert there.routing == RoutingHints(model_version=there.routing.model_version)
    assert (here.routing.prefill_peer, here.routing.prefill_computes) == ("p", True)
    (note,) = world.notes.entries
    assert [(one.replica, one.is_prefill) for one in note.destinations] == [
        ("d", False),
        ("p", True),
    ]
    traces = [one.traceparent for name in "dp" for one in world.sources[name].submitted]
    assert traces == [one.traceparent for one in note.attempts]
    world.play()
    assert_whole(world, recorder)
    accepted = recorder.events[0]
    assert "16 prefilled by another" in accepted.routed  # type: ignore[union-attr]
    (outcome,) = world.outcomes
    assert (outcome.replica, outcome.attempts) == ("d", 1)


def test_a_short_prompt_skips_it() -> None:
    world = world_of("d", "p")
    recorder = begin(world, SHORT)
    assert not world.sources["p"].submitted
    assert sent(world.sources["d"])[0].routing.prefill_peer is None
    world.play()
    assert_whole(world, recorder, SHORT)


def test_what_shapes_the_output_goes_to_the_one_that_answers_alone() -> None:
    world, recorder = world_of("d", "p"), Recorder()
    generation = Generation(
        request_id="x",
        prompt_ids=LONG,
        generated_ids=oracle(LONG, 2),
        sampling=Sampling(presence_penalty=1, logit_bias=((1, 1.0),), seed=3),
        stopping=Stopping(max_tokens=4, min_tokens=3, stop_token_ids=(9,)),
        output=Output(logprobs=2),
        constraint=Constraint(ConstraintKind.REGEX, "a*"),
        quality_of_service=QualityOfService(tenant="t", timeout_ms=5000),
        cache=CacheControl(salt=b"s"),
    )
    world.relay.submit(Submission(generation, "", recorder))
    (there,), (here,) = sent(world.sources["p"]), sent(world.sources["d"])
    assert list(there.prompt_ids) == [*LONG, *oracle(LONG, 2)]
    assert (there.generated_ids, there.output, there.constraint) == ((), Output(), None)
    assert there.stopping == Stopping(max_tokens=0)
    assert there.sampling == Sampling(seed=3)
    assert (there.cache, there.quality_of_service) == (here.cache, here.quality_of_service)
    assert here == replace(
        generation,
        routing=RoutingHints(
            prefill_peer="p", prefill_computes=True, model_version=IDENTITY.version
        ),
    )
    world.play()
    assert_nothing_is_left(world)


@pytest.mark.parametrize("prompt", [SHORT, LONG])
def test_a_peer_that_the_caller_names_is_never_passed_on(prompt: tuple[int, ...]) -> None:
    for names, told in (("d", None), ("dp", "p" if prompt is LONG else None)):
        world, recorder = world_of(*names), Recorder()
        asked = submission("x", recorder, prompt_ids=prompt).generation
        asked = replace(asked, routing=RoutingHints(prefill_peer="10.0.0.1:22"))
        world.relay.submit(Submission(asked, "", recorder))
        hints = [one.routing.prefill_peer for name in names for one in sent(world.sources[name])]
        assert hints[0] == told
        assert set(hints) <= {None, "p"}
        world.play()
        assert_whole(world, recorder, prompt)


def test_one_that_is_needed_no_more_is_cancelled() -> None:
    world = world_of("d", "p")
    recorder = begin(world)
    for _ in range(2):
        world.sources["d"].step()
    assert recorder.ids == oracle(LONG, 1)
    assert world.sources["p"].cancelled == [("x", CancelReason.UNSPECIFIED)]
    world.play()
    assert_whole(world, recorder)


@pytest.mark.parametrize("reason", [CancelReason.CLIENT_GONE, CancelReason.STOP_TEXT])
def test_a_cancel_reaches_both(reason: CancelReason) -> None:
    world, recorder = world_of("d", "p"), Recorder()
    cancel = world.relay.submit(submission("x", recorder, prompt_ids=LONG))
    cancel(reason)
    assert [world.sources[name].cancelled for name in "dp"] == [[("x", reason)]] * 2
    assert_nothing_is_left(world)


def test_a_deadline_reaches_both() -> None:
    world, recorder = world_of("d", "p"), Recorder()
    world.relay.submit(submission("x", recorder, prompt_ids=LONG, timeout_ms=2000))
    timeouts = [sent(world.sources[name])[0].quality_of_service.timeout_ms for name in "dp"]
    assert timeouts == [2000, 2000]
    world.pass_time(2)
    cancelled = [world.sources[name].cancelled for name in "dp"]
    assert cancelled == [[("x", CancelReason.DEADLINE)]] * 2
    assert isinstance(recorder.last, Failed)
    assert recorder.last.code is Code.DEADLINE_EXCEEDED
    assert_nothing_is_left(world)


@pytest.mark.parametrize(
    "failed",
    [
        LOST,
        Failed(code=Code.INTERNAL, message="no"),
        Failed(code=Code.RESOURCE_EXHAUSTED, message="full", retryable=True),
        Failed(code=Code.INVALID_ARGUMENT, message="no"),
    ],
)
@pytest.mark.parametrize("steps", [0, 1])
def test_its_failure_is_the_replicas_and_not_the_generations(failed: Failed, steps: int) -> None:
    world = world_of("d", "p")
    recorder = begin(world)
    if steps:
        world.sources["d"].step()
    world.lose("p", "x", failed)
    assert world.outstanding() == {"d": len(LONG) + 4, "p": 0}, "it is computed where it goes on"
    assert world.fleet["d"].pending_tokens == len(LONG)
    world.play()
    assert_whole(world, recorder)
    assert world.budget.left == 0
    (outcome,) = world.outcomes
    assert (outcome.attempts, outcome.setback) == (1, None)


def test_one_that_fails_in_a_row_is_ejected_and_gets_no_more_prompts() -> None:
    world = world_of("d", "p")
    for number in range(world.fleet.rules.health.ejection_threshold):
        recorder = begin(world, name=f"x{number}")
        world.lose("p", f"x{number}")
        world.play()
        assert_whole(world, recorder)
    assert world.fleet["p"].status is Status.EJECTED
    recorder = begin(world)
    assert not world.sources["p"].running
    world.play()
    assert_whole(world, recorder)


@pytest.mark.parametrize("error", [Unavailable("gone"), Overloaded("full", retry_after_s=1)])
def test_one_that_does_not_take_it_costs_nothing(error: Exception) -> None:
    world = world_of("d", "p")
    world.sources["p"].refuse = error
    recorder = begin(world)
    world.pass_time(0)
    world.play()
    assert_whole(world, recorder)


def test_one_that_dies_leaves_the_generation_where_it_is() -> None:
    world = world_of("d", "p")
    recorder = begin(world)
    world.die("p")
    world.play()
    assert_whole(world, recorder)


def test_it_ends_with_the_leg_that_it_is_for_and_the_next_leg_has_its_own() -> None:
    world = World("d", "e", "p", roles=ROLES)
    recorder = begin(world)
    assert world.where("x") == "d"
    world.lose("d", "x")
    assert world.sources["p"].cancelled == [("x", CancelReason.UNSPECIFIED)]
    assert len(world.sources["p"].submitted) == 2
    assert sent(world.sources["e"])[0].routing.prefill_peer == "p"
    world.play()
    assert_whole(world, recorder)


def test_a_generation_that_moves_has_what_was_delivered_computed_with_its_prompt() -> None:
    world = World("d", "e", "p", roles=ROLES)
    recorder = begin(world)
    for _ in range(3):
        world.sources["d"].step()
    world.fleet.drain("d")
    world.fleet.sweep()
    assert tuple(sent(world.sources["p"])[1].prompt_ids) == (*LONG, *oracle(LONG, 2))
    world.play()
    assert_whole(world, recorder)


def test_what_another_computes_is_pending_there_and_not_here() -> None:
    world = world_of("d", "p")
    begin(world)
    here, there = world.fleet["d"], world.fleet["p"]
    assert (here.running, here.pending_tokens, here.outstanding_tokens) == (1, 1, 5)
    assert (there.running, there.pending_tokens, there.outstanding_tokens) == (1, 17, 17)
    world.sources["p"].step()
    assert (there.running, there.pending_tokens, there.outstanding_tokens) == (0, 0, 0)
    assert (here.running, here.pending_tokens, here.outstanding_tokens) == (1, 1, 5)


def test_what_another_replica_has_is_fetched_from_there() -> None:
    world = world_of("d", "e")
    tell_blocks(world, "e", 4)
    world.fleet["e"].outstanding_tokens += 1000  # so that it is not the better place
    recorder = begin(world)
    (here,) = sent(world.sources["d"])
    assert here.routing.prefill_peer == "e"
    assert world.fleet["d"].pending_tokens == 1
    world.fleet["e"].outstanding_tokens -= 1000
    world.play()
    assert_whole(world, recorder)


def test_a_prefill_that_talks_is_not_listened_to() -> None:
    world = world_of("d", "p")
    recorder = begin(world)
    playing = world.sources["p"].running["x"]
    playing.emit(Tokens(0, [1]))
    world.play()
    assert_whole(world, recorder)
