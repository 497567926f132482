"""What would become of a generation, and why: told, and not done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from services.router.balancing.balancer import Balancer, Choice
from services.router.balancing.candidate import Candidate, Snapshot
from services.router.balancing.selection import Selection, why_not
from services.router.demand import Demand
from services.router.status import TAKING, Role
from services.shared.errors import ServiceError

FULL = "all that could take it are full; it would wait"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """A replica as it stands for one generation; `cost` is infinite where it cannot take it."""

    candidate: Candidate
    cost: float
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """What would be decided.

    Args:
        replica: None where the generation would wait or be refused.
        options: all replicas, the best first.
    """

    replica: str | None
    reason: str
    options: Sequence[Option]


def explain(demand: Demand, fleet: Snapshot, balancer: Balancer) -> Explanation:
    """Changes nothing."""
    try:
        selection = balancer.select(demand, fleet)
    except ServiceError as error:
        selection, replica, reason = Selection(able=()), None, error.message
    else:
        replica, reason = None, FULL
    options: list[Option] = []
    if selection.able:
        choice = balancer.compare(demand, selection)
        decision = balancer.decision(choice, choice.best())
        replica, reason = decision.replica, decision.reason
        options += _compared(balancer, choice)
    able = [one.name for one in selection.able]
    others = [one for one in fleet.candidates if one.name not in able]
    second = [one for one in others if why_not(demand, one, balancer.versions) is None]
    if second:
        choice = balancer.compare(demand, Selection(able=second))
        options += _compared(balancer, choice)
    for one in others:
        cause = why_not(demand, one, balancer.versions)
        if cause is not None:
            options.append(Option(candidate=one, cost=inf, reason=cause))
    return Explanation(replica=replica, reason=reason, options=options)


def _compared(balancer: Balancer, choice: Choice) -> Iterator[Option]:
    for place in choice.order():
        one = choice.among.able[place]
        reason = balancer.reason(choice, place)
        if not choice.note:  # they come second
            reason = f"{_set_back(one)}; {reason}"
        yield Option(candidate=one, cost=choice.costs[place], reason=reason)


def _set_back(one: Candidate) -> str:
    if not one.has_room:
        return "no room"
    if one.role is Role.PREFILL:
        return "kept for prompts of others"
    if not one.takes_lane:
        return "kept for other prompts"
    if one.status is not TAKING[0]:
        return "only where no ready replica can"
    return "its version has had its share"
