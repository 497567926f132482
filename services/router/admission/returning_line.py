"""Generations that had a place and lost it."""

from __future__ import annotations

from typing import NamedTuple

from services.router.admission.waiting import Applicant, expected_cost
from services.router.balancing.candidate import Candidate
from services.router.demand import Demand, Lane


class Kind(NamedTuple):
    """All that decides which replicas a generation may go to: equal kinds wait for the same."""

    lane: Lane
    version: str | None = None
    avoid: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, demand: Demand) -> Kind:
        return cls(demand.lane, demand.version, demand.avoid)

    def suits(self, replica: Candidate) -> bool:
        """Whether one of this kind may go there, if it takes generations at all."""
        return (replica.name, replica.epoch) not in self.avoid and (
            self.version is None or self.version == replica.version
        )


class ReturningLine:
    """They go before all new ones, those of a kind in the order in which they came."""

    def __init__(self) -> None:
        self._kinds: dict[Kind, dict[Applicant, int]] = {}
        self._waiting: dict[Applicant, Kind] = {}
        self.tokens = dict.fromkeys(Lane, 0)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, applicant: Applicant) -> bool:
        return applicant in self._waiting

    def kinds(self) -> list[Kind]:
        """The kinds of those that wait, the first that came first."""
        return list(self._kinds)

    def of(self, kind: Kind) -> list[Applicant]:
        return list(self._kinds.get(kind, ()))

    def first(self, kind: Kind) -> Applicant | None:
        return next(iter(self._kinds.get(kind, ())), None)

    def add(self, kind: Kind, applicant: Applicant) -> None:
        tokens = expected_cost(applicant.demand)
        self._kinds.setdefault(kind, {})[applicant] = tokens
        self._waiting[applicant] = kind
        self.tokens[kind.lane] += tokens

    def remove(self, applicant: Applicant) -> Kind:
        """Returns its kind."""
        kind = self._waiting.pop(applicant)
        self.tokens[kind.lane] -= self._kinds[kind].pop(applicant)
        if not self._kinds[kind]:
            del self._kinds[kind]
        return kind
