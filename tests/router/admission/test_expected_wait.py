"""What a newcomer is told of its wait, against what it then waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from statistics import median

import pytest

from services.router.admission.waiting import Waiting, expected_cost
from services.router.demand import Lane
from tests.router.bureau import Bureau, Visitor, demand
from tests.router.crowd import Source

TOKENS_PER_S = 100
"""Of one generation."""

WARM_S = 60


@dataclass
class ClosedLoop:
    """Clients that ask again as soon as they were served, and generations that take their time."""

    seed: int
    clients: Mapping[Source, int]
    asked: dict[Visitor, tuple[Source, float, float | None]] = field(default_factory=dict)
    ends: list[tuple[float, int, Visitor]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """Told and true, in seconds, of those that had to wait after `WARM_S`."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  # a test's own
        self.bureau = Bureau(window=10**6)
        self.began_at = self.bureau.clock.now
        for source, number in self.clients.items():
            for _ in range(number):
                self.ask(source)

    def ask(self, source: Source) -> None:
        prompt, output = self.random.randint(1, source.most), self.random.randint(1, 200)
        wanted = demand(source.tenant, prompt, output=output, lane=source.lane, batch=source.batch)
        visitor = Visitor(self.bureau, wanted)
        told = self.bureau.admission._queue.expected_wait_s(Waiting.of(visitor))
        self.asked[visitor] = source, self.bureau.clock.now, told
        self.bureau.admission.enter(visitor)
        self.let_begin()

    def let_begin(self) -> None:
        for visitor in self.bureau.went:
            end = self.bureau.clock.now + expected_cost(visitor.demand) / TOKENS_PER_S
            heappush(self.ends, (end, len(self.asked), visitor))
            _, asked_at, told = self.asked[visitor]
            waited = self.bureau.clock.now - asked_at
            if told is not None and waited and asked_at > self.began_at + WARM_S:
                self.waits.append((told, waited))
        self.bureau.went.clear()

    def run(self, seconds: float) -> None:
        while self.ends[0][0] < self.began_at + seconds:
            end, _, visitor = heappop(self.ends)
            self.bureau.clock.pass_time(end - self.bureau.clock.now)
            self.bureau.finish(visitor)
            self.let_begin()
            self.ask(self.asked[visitor][0])


LOADS: dict[str, dict[Source, int]] = {
    "one tenant": {Source(""): 60},
    "tenants of different sizes": {Source("a"): 60, Source("b", most=500): 20, Source("c"): 5},
    "lanes and classes": {
        Source("a"): 40,
        Source("a", Lane.LONG, most=1000): 20,
        Source("b", batch=True): 40,
    },
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("load", LOADS)
def test_in_a_steady_run_it_is_true_within_a_factor_of_two(load: str, seed: int) -> None:
    loop = ClosedLoop(seed, LOADS[load])
    loop.run(300)
    ratios = [told / waited for told, waited in loop.waits]
    assert len(ratios) > 500
    assert 0.7 < median(ratios) < 1.4
    assert sum(0.5 <= ratio <= 2 for ratio in ratios) > 0.9 * len(ratios)
