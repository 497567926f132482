"""Tenants that always have something waiting before one replica."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from services.router.admission.admission_rules import AdmissionRules
from services.router.admission.waiting import expected_cost
from services.router.demand import Lane
from tests.router.bureau import Bureau, Visitor, demand

BACKLOG = 3
"""Of each tenant, class and lane."""


@dataclass(frozen=True, slots=True)
class Source:
    """What comes again and again from one tenant, by class and lane; sizes are up to `most`."""

    tenant: str
    lane: Lane = Lane.SHORT
    batch: bool = False
    most: int = 100


class Crowd:
    """Keeps `BACKLOG` of each source waiting, and plays generations that end in random order."""

    def __init__(self, seed: int, sources: Sequence[Source], weights: Mapping[str, float]) -> None:
        self.random = Random(seed)  # noqa: S311  # a test's own
        self.sources = sources
        self.bureau = Bureau(rules=AdmissionRules(tenant_weights=weights))
        self.running = self.bureau.fill()
        self.waiting: Counter[Source] = Counter()
        self.of: dict[Visitor, Source] = {}
        self.went: list[tuple[Source, int]] = []
        for source in sources:
            self.refill(source)

    def refill(self, source: Source) -> None:
        while self.waiting[source] < BACKLOG:
            wanted = demand(
                source.tenant,
                self.random.randint(1, source.most),
                lane=source.lane,
                batch=source.batch,
            )
            self.waiting[source] += 1
            self.of[self.bureau.enter(wanted)] = source

    def play(self, tokens: int) -> None:
        """Until so many tokens went."""
        served = 0
        while served < tokens:
            ended = self.running.pop(self.random.randrange(len(self.running)))
            self.bureau.finish(ended)
            for visitor in self.bureau.went:
                source = self.of.pop(visitor)
                cost = expected_cost(visitor.demand)
                served += cost
                self.went.append((source, cost))
                self.running.append(visitor)
                self.waiting[source] -= 1
                self.bureau.begin(visitor)
                self.refill(source)
            self.bureau.went.clear()

    def tokens(self) -> Counter[Source]:
        counts: Counter[Source] = Counter()
        for source, cost in self.went:
            counts[source] += cost
        return counts

    def longest_wait(self, source: Source) -> int:
        """Most tokens that went between two of a source."""
        longest = since = 0
        for other, cost in self.went:
            since = 0 if other == source else since + cost
            longest = max(longest, since)
        return longest
