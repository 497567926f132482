"""The smallest world in which the same invariant breaks: with as few faults as can be."""

from __future__ import annotations

from tests.simulation.world import Verdict
from tests.simulation.worlds import run_world


def shrink(seed: int) -> tuple[Verdict, list[str]]:
    """The verdict, and the faults that can be left out; a world that holds stays whole."""
    verdict = run_world(seed)
    without: list[str] = []
    if verdict.violation is None:
        return verdict, without
    rule = verdict.violation.rule
    tried = -1
    while tried != len(without):
        tried = len(without)
        for fault in verdict.faults:
            smaller = run_world(seed, [*without, fault])
            if smaller.violation is not None and smaller.violation.rule == rule:
                without.append(fault)
                verdict = smaller
    return verdict, without
