"""Runs worlds: `python -m tests.simulation --seed 7`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.simulation.world import run_world


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    failed = 0
    began = time.monotonic()
    for seed in range(options.seed, options.seed + options.worlds):
        verdict = run_world(seed, options.without)
        if verdict.violation is not None:
            failed += 1
            print(f"seed {seed}: {verdict.violation}")
        if options.history is not None:
            options.history.write_text("\n".join(verdict.history.lines()) + "\n")
    print(f"{options.worlds} worlds, {failed} broken, {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
