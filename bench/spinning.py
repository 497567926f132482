"""How long OpenMP threads should spin for work: tokens/s alone and beside a busy neighbour.

Each setting runs engine steps at 1, 8 and 32 sequences of 128 tokens in a process of its own,
once alone and once beside a process that keeps one core. The settings take turns; the best round of
each counts, since other people's load only ever takes away. The last line is the geometric mean of
the engine's own setting over that of libgomp's default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean

from bench.engine_step import AIMS, DEFAULT_MODEL, whole_step
from bench.ratio import Ratio
from bench.service_process import ROOT
from bench.step_loop import real_parts
from services.engine.threads import SPIN_COUNT

SEQUENCES = tuple(AIMS)
MOST_STEPS = 200

DEFAULT = "default"
PASSIVE = "passive"
SETTINGS = (DEFAULT, PASSIVE, "500", "2000", "5000", "20000", "100000")
# It ends with its parent: left behind, it would slow everything that is measured later.
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"


def environment(setting: str) -> dict[str, str]:
    """The environment of a measured process."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    match setting:
        case "default":
            # What libgomp spins without a word from anyone, said so that the engine does not.
            return kept | {"GOMP_SPINCOUNT": "300000"}
        case "passive":
            return kept | {"OMP_WAIT_POLICY": "PASSIVE"}
        case _:
            return kept | {"GOMP_SPINCOUNT": setting}


def measure(folder: Path, seconds: float) -> list[float]:
    """Tokens/s at each of SEQUENCES, in this process."""
    parts = real_parts(folder)
    rates = []
    for sequences in SEQUENCES:
        step = whole_step(parts, sequences, MOST_STEPS)
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds and steps < MOST_STEPS:
            step()
            steps += 1
        rates.append(sequences * steps / (time.perf_counter() - began))
    return rates


def measured(setting: str, options: argparse.Namespace) -> list[float]:
    """The same in a process of its own, in a session of its own."""
    command = [sys.executable, "-m", "bench.spinning", "--measure", "--model", options.model]
    done = subprocess.run(
        [*command, "--seconds", str(options.seconds)],
        cwd=ROOT,
        env=environment(setting),
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
    )
    rates: list[float] = json.loads(done.stdout)
    return rates


@contextmanager
def neighbour(*, busy: bool) -> Iterator[None]:
    """A process that keeps one core, where it is wanted."""
    if not busy:
        yield
        return
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            yield
        finally:
            process.kill()


def rates_of(options: argparse.Namespace) -> dict[str, list[float]]:
    """Tokens/s of each setting: quiet at each of SEQUENCES, then busy."""
    best = {setting: [0.0] * 2 * len(SEQUENCES) for setting in SETTINGS}
    for _ in range(options.rounds):
        for setting in SETTINGS:
            rates = []
            for busy in (False, True):
                with neighbour(busy=busy):
                    rates += measured(setting, options)
            best[setting] = [max(pair) for pair in zip(best[setting], rates, strict=True)]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(DEFAULT_MODEL))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(Path(options.model), options.seconds)))
        return
    best = rates_of(options)
    heads = [f"{load} {n}" for load in ("quiet", "busy") for n in SEQUENCES]
    print(f"{'spin':>8}" + "".join(f"{head:>10}" for head in [*heads, "mean"]))
    for setting, rates in best.items():
        means = [*rates, geometric_mean(rates)]
        print(f"{setting:>8}" + "".join(f"{rate:>10.1f}" for rate in means))
    ratio = geometric_mean(best[str(SPIN_COUNT)]) / geometric_mean(best[DEFAULT])
    print(Ratio(name=f"spin_{SPIN_COUNT}_over_libgomp_default", value=ratio))


if __name__ == "__main__":
    main()
