"""What became of a sequence in a step, as events for whoever asked for it."""

from __future__ import annotations

import time

from services.engine.runner import Draw
from services.engine.sequence import Sequence
from services.engine.stopping import End
from services.shared.stream.events import (
    Accepted,
    Finished,
    Timeline,
    Tokens,
    Usage,
)


def accepted(sequence: Sequence) -> Accepted:
    return Accepted(
        prompt_tokens=len(sequence.generation.prompt_ids),
        cached_tokens=sequence.cached_tokens,
        seed=sequence.seed,
    )


def drawn(sequence: Sequence, draw: Draw) -> Tokens:
    """The event of a token that was appended to the sequence."""
    return Tokens(sequence.position - 1, [draw.token_id], draw.logprobs)


def finished(sequence: Sequence, end: End) -> Finished:
    return Finished(
        reason=end.reason,
        stop_token_id=end.stop_token_id,
        usage=Usage(
            prompt_tokens=len(sequence.generation.prompt_ids),
            cached_tokens=sequence.cached_tokens.total,
            completion_tokens=sequence.position,
        ),
        timeline=_timeline(sequence),
    )


def _timeline(sequence: Sequence) -> Timeline:
    now = time.monotonic_ns()
    scheduled = sequence.scheduled_ns or now
    first = sequence.first_token_ns or now
    return Timeline(
        queued_us=(scheduled - sequence.arrived_ns) // 1000 - sequence.fetch_us,
        prefill_us=(first - scheduled) // 1000,
        decode_us=(now - first) // 1000,
        preemptions=sequence.preemptions,
        fetch_us=sequence.fetch_us,
        cached_tokens=sequence.cached_tokens,
        cache_miss=sequence.cache_miss,
    )
