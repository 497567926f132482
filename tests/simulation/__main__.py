"""Runs worlds: `python -m tests.simulation --seed 7`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.commit import commit
from tests.simulation.coverage import never_seen
from tests.simulation.runs import run_worlds
from tests.simulation.shrink import shrink
from tests.simulation.world import Verdict
from tests.simulation.worlds import run_world


def main(argv: Sequence[str]) -> int:
    """Returns 1 if an invariant broke."""
    options = _options().parse_args(argv)
    if options.worlds > 1:
        return _many(range(options.seed, options.seed + options.worlds))
    if options.shrink:
        verdict, without = shrink(options.seed)
        left_out = "".join(f" --without {fault!r}" for fault in without)
        print(f"python -m tests.simulation --seed {options.seed}{left_out}")
    else:
        verdict = run_world(options.seed, options.without)
    return _one(verdict, options.history)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=0, help="of the first world")
    parser.add_argument("--worlds", type=int, default=1, help="how many, with the next seeds")
    parser.add_argument("--history", type=Path, help="where to write what happened, as JSON lines")
    parser.add_argument("--without", action="append", default=[], help="a fault to leave out")
    parser.add_argument("--shrink", action="store_true", help="leave out all that changes nothing")
    return parser


def _one(verdict: Verdict, history: Path | None) -> int:
    faults = ", ".join(verdict.faults) or "none"
    print(f"seed {verdict.seed}, commit {commit()}, faults: {faults}")
    if history is not None:
        history.write_text("".join(f"{line}\n" for line in verdict.history.lines()))
    if verdict.violation is None:
        print("all invariants held")
        return 0
    print(verdict.violation)
    return 1


def _many(seeds: Sequence[int]) -> int:
    reports = run_worlds(seeds)
    broken = [report for report in reports if report.violation is not None]
    for report in broken:
        print(report)
    seen = sum((report.seen for report in reports), start=type(reports[0].seen)())
    print(f"{len(reports)} worlds, {len(broken)} broken; never seen: {never_seen(seen) or 'none'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
