"""Many worlds, on all cores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from tests.simulation.judge import Violation
from tests.simulation.worlds import run_world


@dataclass(frozen=True, slots=True)
class Report:
    """What is kept of a world."""

    seed: int
    violation: Violation | None
    seen: Counter[str]

    def __str__(self) -> str:
        return f"python -m tests.simulation --seed {self.seed}: {self.violation}"


def report(seed: int) -> Report:
    verdict = run_world(seed)
    return Report(seed, verdict.violation, verdict.judge.seen)


def run_worlds(seeds: Iterable[int]) -> list[Report]:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(report, seeds, chunksize=5))
