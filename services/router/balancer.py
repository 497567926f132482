"""Which replica takes a generation: a pure function of the request and the fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from services.router.replica import Status
from services.shared.errors import NotFound, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A replica at the moment of the choice."""

    name: str
    status: Status
    expected_tokens: int = 0
    assigned: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The fleet at the moment of the choice; `model` is None while no replica is described."""

    model: str | None
    candidates: Sequence[Candidate]


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The replica that was chosen, and why."""

    replica: str
    reason: str


def choose(model: str, fleet: Snapshot, tried: Collection[str] = ()) -> Decision:
    """The ready replica with the fewest tokens before a new generation.

    Among equals it is the one that was given the fewest generations, then the first by name.

    Args:
        model: what the request asks for; empty for whichever is served.
        fleet: the replicas.
        tried: names of those that failed this generation.

    Raises:
        NotFound: the fleet serves another model.
        Unavailable: no replica is ready.
    """
    if model and fleet.model is not None and model != fleet.model:
        raise NotFound(f"model {model!r} is not served here, {fleet.model!r} is", field="model")
    ready = [
        candidate
        for candidate in fleet.candidates
        if candidate.status is Status.READY and candidate.name not in tried
    ]
    if not ready:
        raise Unavailable(_why_none(fleet.candidates, tried))
    best = min(ready, key=lambda one: (one.expected_tokens, one.assigned, one.name))
    return Decision(
        replica=best.name,
        reason=f"fewest outstanding tokens, {best.expected_tokens}, of {len(ready)} ready",
    )


def _why_none(candidates: Sequence[Candidate], tried: Collection[str]) -> str:
    counts = Counter(
        "failed it" if candidate.name in tried else candidate.status.value
        for candidate in candidates
    )
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"no replica can take the generation; of {len(candidates)}: {states}"
