"""The stages of a generation follow one another from its arrival to its end."""

from __future__ import annotations

from itertools import pairwise

from services.engine.sequence import Sequence
from services.engine.stages import Stage, stages_of
from services.shared.stream.events import CachedTokens
from tests.engine.harness import Harness, simulated
from tests.recorder import generation

ENDED_NS = 10_000_000


def sequence(scheduled_ns: int | None, first_ns: int | None, fetch_us: int = 0) -> Sequence:
    one = Harness(simulated()).admission.admit(generation("x", prompt_ids=(5, 6, 7)))
    one.arrived_ns = 1_000_000
    one.fetch_us = fetch_us
    one.scheduled_ns, one.first_token_ns = scheduled_ns, first_ns
    return one


def told(one: Sequence) -> list[Stage]:
    """Without a gap between them."""
    stages = list(stages_of(one, ENDED_NS))
    assert stages[0].began_ns == one.arrived_ns
    assert stages[-1].ended_ns == ENDED_NS
    assert all(before.ended_ns == after.began_ns for before, after in pairwise(stages))
    assert all(stage.began_ns <= stage.ended_ns for stage in stages)
    return stages


def names(stages: list[Stage]) -> list[str]:
    return [stage.name for stage in stages]


def test_what_was_fetched_queued_computed_and_drawn() -> None:
    one = sequence(4_000_000, 6_000_000, fetch_us=2_000)
    one.cached_tokens = CachedTokens(peer=2)
    one.append(9)
    one.append(8)
    stages = told(one)
    assert names(stages) == ["engine.fetch", "engine.queued", "engine.prefill", "engine.decode"]
    assert stages[1].began_ns == 3_000_000
    assert stages[2].figures == {"computed_tokens": 1}
    assert stages[3].figures == {"drawn_tokens": 2}


def test_what_ends_early_came_to_fewer_stages() -> None:
    assert names(told(sequence(None, None))) == ["engine.queued"]
    assert names(told(sequence(4_000_000, None))) == ["engine.queued", "engine.prefill"]
