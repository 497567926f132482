"""The step loop: ends, cancels, deadlines, faults of one sequence among others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Rows
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

from services.engine import outcome
from services.engine.runner import Draw
from services.engine.scheduler import Work
from services.engine.sequence import Sequence
from services.shared.errors import Code
from services.shared.stream.events import Accepted, Failed, Finished, FinishReason
from services.shared.stream.generation import Generation, QualityOfService, Sampling, Stopping
from tests.engine.harness import Harness, simulated
from tests.redis_server import PATIENCE_S, wait_for


def generation(
    number: int = 0, prompt: int = 10, generated: Rows[int] = (), **stopping: Any
) -> Generation:
    return Generation(
        request_id=f"r{number}",
        prompt_ids=[3 + (number * 7 + index) % 900 for index in range(prompt)],
        generated_ids=generated,
        sampling=Sampling(seed=number),
        stopping=Stopping(**({"max_tokens": 12} | stopping)),
    )


def whole_pool_is_back(harness: Harness) -> bool:
    pool = harness.parts.pool
    return pool.free + pool.cached == pool.count


def test_events_come_in_order_and_end_once() -> None:
    harness = Harness(simulated())
    key = harness.add(generation())
    harness.run()
    events = harness.events[key]
    assert isinstance(events[0], Accepted)
    assert sum(isinstance(event, (Finished, Failed)) for event in events) == 1
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.MAX_TOKENS
    assert end.usage.prompt_tokens == 10
    assert end.usage.completion_tokens == 12 == len(harness.ids(key))


def test_a_stop_token_ends_the_output_and_is_told() -> None:
    (whole,) = Harness(simulated()).outputs([generation()])
    harness = Harness(simulated())
    key = harness.add(generation(stop_token_ids=(whole[4],)))
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert (end.reason, end.stop_token_id) == (FinishReason.STOP_TOKEN, whole[4])
    assert harness.ids(key) == whole[:5]


def test_the_context_bounds_the_output() -> None:
    harness = Harness(simulated(blocks=200))
    key = harness.add(generation(prompt=500, max_tokens=None))
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.CONTEXT_FULL
    assert len(harness.ids(key)) == 12


def test_max_tokens_zero_fills_the_cache_and_draws_nothing() -> None:
    harness = Harness(simulated())
    key = harness.add(generation(max_tokens=0))
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.completion_tokens) == (FinishReason.MAX_TOKENS, 0)
    assert harness.parts.pool.cached == 2


@pytest.mark.parametrize("delivered", range(13))
def test_a_continued_generation_ends_as_the_whole_one(delivered: int) -> None:
    (whole,) = Harness(simulated()).outputs([generation()])
    harness = Harness(simulated())
    key = harness.add(generation(generated=whole[:delivered]))
    harness.run()
    rest = [event for event in harness.events[key] if hasattr(event, "ids")]
    assert [token for event in rest for token in event.ids] == whole[delivered:]
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert end.usage.completion_tokens == 12


def test_outputs_do_not_depend_on_neighbours_or_preemption() -> None:
    generations = [generation(number, prompt=5 + 3 * number) for number in range(10)]
    alone = [Harness(simulated()).outputs([one])[0] for one in generations]
    roomy, tight = Harness(simulated(blocks=200)), Harness(simulated(blocks=14))
    assert roomy.outputs(generations) == alone
    assert tight.outputs(generations) == alone
    preemptions = [
        event.timeline.preemptions
        for events in tight.events.values()
        for event in events
        if isinstance(event, Finished)
    ]
    assert sum(preemptions) > 0
    assert whole_pool_is_back(tight)


def test_cancel_frees_the_blocks_before_the_next_step() -> None:
    harness = Harness(simulated())
    sequence = harness.admission.admit(generation(max_tokens=100))
    harness.loop.add(sequence)
    harness.loop.step()
    harness.loop.command(lambda: harness.loop.cancel(sequence))
    harness.loop.step()
    assert harness.loop.scheduler.idle
    assert whole_pool_is_back(harness)


def test_a_passed_deadline_fails_running_and_waiting_sequences() -> None:
    harness = Harness(simulated())
    late = Generation(
        request_id="late",
        prompt_ids=[5],
        quality_of_service=QualityOfService(timeout_ms=1),
        stopping=Stopping(max_tokens=10_000),
    )
    key, other = harness.add(late), harness.add(generation())
    harness.run()
    end = harness.end(key)
    assert isinstance(end, Failed)
    assert end.code is Code.DEADLINE_EXCEEDED
    assert isinstance(harness.end(other), Finished)


class Faulty:
    """A runner with a bug that one sequence triggers."""

    drawn_ns = 0

    def __init__(self, inner: Any, culprit: str) -> None:
        self._inner = inner
        self._culprit = culprit

    def warm_up(self) -> None:
        pass

    def run(self, works: Rows[Work]) -> list[Draw]:
        if any(work.sequence.generation.request_id == self._culprit for work in works):
            raise RuntimeError("a bug")
        draws: list[Draw] = self._inner.run(works)
        return draws


def faulty_method(owner: Any, name: str, culprit: str) -> Callable[..., Any]:
    """The method, with a bug that shows when one sequence is handled."""
    inner = getattr(owner, name)

    def method(first: Any, *rest: Any) -> Any:
        sequence = getattr(first, "sequence", first)
        if isinstance(sequence, Sequence) and sequence.generation.request_id == culprit:
            raise RuntimeError("a bug")
        return inner(first, *rest)

    return method


STAGES = ["add", "place", "grow", "run", "advance", "accept", "append", "stop"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_bug_with_one_of_eight_sequences_fails_that_one_alone(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generations = [generation(number) for number in range(8)]
    expected = Harness(simulated()).outputs(generations)
    parts = simulated()
    harness = Harness(parts, runner=Faulty(parts.runner, "r3") if stage == "run" else None)
    loop, culprit = harness.loop, "r3"
    owner: Any
    owner, name = {
        "add": (loop.scheduler, "add"),
        "place": (loop.scheduler, "_place"),
        "grow": (loop.scheduler, "_grow"),
        "advance": (loop.scheduler, "advance"),
        "accept": (outcome, "accepted"),
        "append": (outcome, "drawn"),
        "stop": (loop._stopper, "end"),
        "run": (parts.runner, "run"),
    }[stage]
    if stage != "run":
        monkeypatch.setattr(owner, name, faulty_method(owner, name, culprit))
    keys = [harness.add(one) for one in generations]
    harness.run()
    end = harness.end(keys[3])
    assert isinstance(end, Failed)
    assert end.code is Code.INTERNAL
    assert "bug" not in end.message
    others = [number for number in range(8) if number != 3]
    assert [harness.ids(keys[number]) for number in others] == [
        expected[number] for number in others
    ]
    assert whole_pool_is_back(harness)


@contextmanager
def running(harness: Harness) -> Iterator[None]:
    thread = Thread(target=harness.loop.run)
    thread.start()
    try:
        yield
    finally:
        harness.loop.command(harness.loop.stop)
        thread.join()


def test_while_all_blocks_are_leased_the_loop_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.engine.loop.PAUSE_S", 3600)
    harness = Harness(simulated())
    pool, looked = harness.parts.pool, Event()
    leased = pool.lease_blank(pool.available)
    key = harness.add(generation())
    with running(harness):
        harness.loop.command(looked.set)
        assert looked.wait(PATIENCE_S)
        harness.loop.command(partial(pool.end_lease, leased))
        wait_for(lambda: harness.loop.scheduler.idle)
    assert isinstance(harness.end(key), Finished)
    assert whole_pool_is_back(harness)
    assert harness.loop.progress.steps < 30


def test_a_deadline_passes_while_all_blocks_are_leased() -> None:
    harness = Harness(simulated())
    harness.parts.pool.lease_blank(harness.parts.pool.available)
    late = replace(generation(), quality_of_service=QualityOfService(timeout_ms=1))
    key = harness.add(late)
    with running(harness):
        wait_for(lambda: harness.loop.scheduler.idle)
    end = harness.end(key)
    assert isinstance(end, Failed)
    assert end.code is Code.DEADLINE_EXCEEDED
