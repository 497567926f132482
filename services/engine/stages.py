"""Where the time of a generation went, stage by stage, for its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from services.engine.sequence import Sequence
from services.shared.span_names import Attribute


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What a generation was at for a while; times are nanoseconds on the monotonic clock."""

    name: str
    began_ns: int
    ended_ns: int
    figures: dict[str, Attribute]


def stages_of(sequence: Sequence, ended_ns: int) -> Iterator[Stage]:
    """The stages that it came to until it ended, one after the other."""
    fetched_ns = sequence.arrived_ns + 1000 * sequence.fetch_us
    scheduled_ns = sequence.scheduled_ns or ended_ns
    first_ns = sequence.first_token_ns or ended_ns
    if sequence.fetch_us:
        yield _stage("fetch", sequence.arrived_ns, fetched_ns, {})
    yield _stage("queued", fetched_ns, scheduled_ns, {"preemptions": sequence.preemptions})
    if sequence.scheduled_ns is not None:
        computed = len(sequence.generation.prompt_ids) - sequence.cached_tokens.total
        yield _stage("prefill", scheduled_ns, first_ns, {"computed_tokens": computed})
    if sequence.first_token_ns is not None:
        drawn = sequence.position - len(sequence.generation.generated_ids)
        yield _stage("decode", first_ns, ended_ns, {"drawn_tokens": drawn})


def _stage(name: str, began_ns: int, ended_ns: int, figures: dict[str, Attribute]) -> Stage:
    return Stage(name=f"engine.{name}", began_ns=began_ns, ended_ns=ended_ns, figures=figures)
