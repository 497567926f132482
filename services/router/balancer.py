"""Which replica takes a generation: a pure function of the request and the fleet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from services.router.candidate import Candidate, Snapshot
from services.router.demand import Demand
from services.router.status import TAKING
from services.shared.errors import NotFound, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The replica that was chosen, and why; the reason names no replica, for callers read it."""

    replica: str
    reason: str


def choose(demand: Demand, fleet: Snapshot) -> Decision | None:
    """The best replica for a generation; None while all that could take it are full.

    Raises:
        NotFound: the fleet serves another model.
        Unavailable: no replica can take it.
    """
    if demand.model and fleet.model is not None and demand.model != fleet.model:
        raise NotFound(
            f"model {demand.model!r} is not served here, {fleet.model!r} is", field="model"
        )
    taking = [candidate for candidate in fleet.candidates if may_take(demand, candidate)]
    if not taking:
        raise Unavailable(_why_none(demand, fleet))
    best_status = min(TAKING.index(candidate.status) for candidate in taking)
    able = [one for one in taking if TAKING.index(one.status) == best_status and one.has_room]
    if not able:
        return None
    best = min(able, key=lambda one: (one.expected_tokens or 0, one.assigned, one.name))
    return Decision(
        replica=best.name,
        reason=f"fewest outstanding tokens, {best.expected_tokens}, of {len(able)} ready",
    )


def may_take(demand: Demand, candidate: Candidate) -> bool:
    """Whether a replica is one for this generation, now or when it has room."""
    return (
        candidate.status in TAKING
        and candidate.weight > 0
        and candidate.takes_lane
        and demand.version in {None, candidate.version}
        and (candidate.name, candidate.epoch) not in demand.avoid
    )


def _why_none(demand: Demand, fleet: Snapshot) -> str:
    counts = Counter(
        "failed it" if (one.name, one.epoch) in demand.avoid else one.status.value
        for one in fleet.candidates
    )
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    return f"no replica can take the generation; of {len(fleet.candidates)}: {states}"
